package image

import (
	"io"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/source"
)

// Retry is one row of the table that says which failures of a registry are
// tried again. The first row that matches decides.
type Retry struct {
	// Name of the failure, for the log.
	Name string
	// MinStatus and MaxStatus bound the HTTP statuses of the row.
	MinStatus, MaxStatus int
	// Connection: the row is for connections that break or time out. A name
	// that does not resolve and a port where nobody listens are not retried.
	Connection bool
	// Attempts in all, the first included.
	Attempts int
	// Delay before the second attempt; it doubles up to MaxDelay.
	Delay, MaxDelay time.Duration
	// RetryAfter: the registry's Retry-After header, up to MaxDelay, replaces Delay.
	RetryAfter bool
}

// retryTable is nil for the default table alone: an empty one has no retries.
func retryTable(rows []Retry) []source.Retry {
	if rows == nil {
		return nil
	}
	table := make([]source.Retry, len(rows))
	for i, row := range rows {
		table[i] = source.Retry(row)
	}
	return table
}

// DockerKeychain finds credentials where docker login and podman login put
// them: in the first of these files that exists, or with the credential helper
// that it names, a program docker-credential-NAME.
//
//   - $DOCKER_CONFIG/config.json, or without that variable ~/.docker/config.json
//   - $REGISTRY_AUTH_FILE
//   - $XDG_RUNTIME_DIR/containers/auth.json
//   - $XDG_CONFIG_HOME/containers/auth.json, or ~/.config/containers/auth.json
//
// The file is read at each request for credentials, so that a login counts at
// once. Getenv looks up the environment's variables.
func DockerKeychain(getenv func(string) string) authn.Keychain { return source.Keychain(getenv) }

// Decompress undoes the compression of a layer or another archive, gzip or zstd;
// what has neither passes as it is. The result does not close r,
// and reads r to its end when it is read to its own.
func Decompress(r io.Reader) (plain io.ReadCloser, compressed bool, err error) {
	return blob.Decompress(r)
}
