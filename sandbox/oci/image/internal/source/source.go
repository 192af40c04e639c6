// Package source finds images where they come from: registries, OCI layout
// directories, archives as docker save writes them. What it finds is a [Candidate]
// with verified manifests, whose layers are read and verified one by one.
package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/proctor-run/proctor/sandbox"
)

// Options of a Finder.
type Options struct {
	// Mirrors are the OCI layout directories that Mirrors looks in.
	Mirrors []string
	// Keychain has the credentials; nil means those of the user's docker login.
	Keychain authn.Keychain
	// Transport reaches registries; nil means one that honours the proxy
	// variables of the environment.
	Transport http.RoundTripper
	// Retries says which failures are tried again; nil means the default table.
	Retries []Retry
	// Platform is what images are to run on.
	Platform v1.Platform
	// MaxBytes of an uncompressed archive.
	MaxBytes int64
	// Scratch makes a temporary file.
	Scratch func(pattern string) (*os.File, error)
	// Log receives retries.
	Log *slog.Logger
	// Now is the clock for Retry-After dates, and Sleep waits before another
	// attempt, or returns the cause of the context's end.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error
}

// Finder finds images. Its methods may be called concurrently.
type Finder struct {
	opts     Options
	registry *registry
}

// New returns a Finder. All fields that may not be empty must be set.
func New(opts Options) *Finder { return &Finder{opts: opts, registry: newRegistry(opts)} }

// Close gives up idle connections.
func (f *Finder) Close() { f.registry.close() }

// Local finds the image of a local reference in its layout or archive. Errors:
// *MissingError, *PlatformError, *blob.DigestError.
func (f *Finder) Local(ctx context.Context, r Reference) (*Candidate, error) {
	if r.kind == kindLayout {
		return f.fromLayout(ctx, r)
	}
	return f.fromArchive(ctx, r)
}

// Mirrors looks through the mirror layouts for a registry's reference, and says
// where it looked. Without an error, the candidate is nil if none has it.
func (f *Finder) Mirrors(ctx context.Context, r Reference) (*Candidate, []string, error) {
	var looked []string
	for _, dir := range f.opts.Mirrors {
		c, err := f.fromMirror(ctx, r, dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			looked = append(looked, fmt.Sprintf("no OCI layout at %q", dir))
		case errors.Is(err, sandbox.ErrImageNotFound):
			looked = append(looked, err.Error())
		case err != nil:
			return nil, nil, err
		case c != nil:
			return c, nil, nil
		default:
			looked = append(looked, fmt.Sprintf("not in mirror %q", dir))
		}
	}
	return nil, looked, nil
}
