package image

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
)

// Options of a store. The zero value is usable.
type Options struct {
	// Mirrors are OCI layout directories that are asked for ordinary references
	// before any registry. An image's name in them is the annotation
	// org.opencontainers.image.ref.name ("debian:12").
	Mirrors []string
	// Offline: no registry is asked.
	Offline bool
	// Refresh asks the registry even when the store has the reference.
	Refresh bool
	// Keychain has the credentials; nil means those of the user's docker login.
	Keychain authn.Keychain
	// Transport reaches registries; nil means one that honours the proxy
	// variables of the environment.
	Transport http.RoundTripper
	// Architecture in Go's words ("arm64"); empty means this machine's.
	Architecture string
	// Parallel layers being downloaded or unpacked; 0 means DefaultParallel.
	Parallel int
	// Limits of what a layer may be.
	Limits Limits
	// Retries replaces DefaultRetries when not nil.
	Retries []Retry
	// Log is told of retries and removed leftovers; nil discards.
	Log *slog.Logger
}

// DefaultParallel layers at a time: registries limit connections, and one
// unpacking layer keeps a processor busy.
const DefaultParallel = 4

// Store keeps unpacked layers and the images made of them. Its methods may be
// called concurrently, and several processes may use one directory.
type Store struct{}

// Open opens the store in dir, which is created when missing, and removes what
// killed processes left in it.
func Open(dir string, opts Options) (*Store, error) { return &Store{}, nil }

// Close ends what is under way and gives up the claim on the layers that were
// handed out.
func (s *Store) Close() error { return nil }

// Resolve returns an image if all of it is in the store. It asks no registry
// and unpacks nothing. Errors: sandbox.ErrImageNotFound when the store has not
// got it.
func (s *Store) Resolve(ctx context.Context, ref string) (Image, error) {
	return Image{}, errors.ErrUnsupported
}

// Pull returns an image, fetching what the store lacks. Concurrent calls for
// the same image share the work; it goes on while one of them still waits.
// Progress, when not nil, is told what happens, a few times per second at most
// and never from two goroutines at a time. Errors: *NotFoundError and
// *PlatformError (both are sandbox.ErrImageNotFound), *UnauthorizedError,
// *UnreachableError, *DigestError, *LayerError.
func (s *Store) Pull(ctx context.Context, ref string, progress func(message string)) (Image, error) {
	return Image{}, errors.ErrUnsupported
}

// Changes are what a new image has over its base.
type Changes struct {
	// Ref, when not empty, names the new image for Resolve and Pull.
	Ref string
	// Env is set over the base's.
	Env []string
	// User and Workdir replace the base's when not empty.
	User, Workdir string
	// Shell replaces the base's when not nil.
	Shell []string
	// Entrypoint and Cmd replace the base's when not nil.
	Entrypoint, Cmd []string
	// Labels are set over the base's.
	Labels map[string]string
	// CreatedBy is noted in the image's history.
	CreatedBy string
}

// Commit makes a new image of a base and what was written on top of it. The
// directory upper is the upper directory of an overlay on base's Dirs; it is
// moved into the store, so it must lie on the same file system, must not be
// mounted any more, and is gone afterwards. An empty upper changes the config
// alone. The zero Image is a valid base.
func (s *Store) Commit(ctx context.Context, base Image, upper string, changes Changes) (Image, error) {
	return Image{}, errors.ErrUnsupported
}

// Pruned says what Prune removed.
type Pruned struct {
	Images int
	Layers int
	Bytes  int64 // file content of the removed layers
}

// Prune removes the images that are not in keep, and the layers that no
// remaining image has. What a Store in this or another process handed out and
// did not Close stays.
func (s *Store) Prune(ctx context.Context, keep ...Image) (Pruned, error) {
	return Pruned{}, errors.ErrUnsupported
}
