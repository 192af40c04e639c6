package build

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/buildcontext"
	"github.com/proctor-run/proctor/sandbox/oci/image"
)

// Images is what building needs of an image store.
type Images interface {
	// Pull returns an image by its reference, see image.Store.Pull.
	Pull(ctx context.Context, ref string, progress func(message string)) (image.Image, error)
	// Commit makes an image of a base and an upper directory, see image.Store.Commit.
	Commit(ctx context.Context, base image.Image, upper string, changes image.Changes) (image.Image, error)
	// Make returns the image with a name and makes it when it is not there,
	// see image.Store.Make.
	Make(ctx context.Context, ref string, fresh bool, progress func(message string),
		produce func(ctx context.Context, say func(string)) (image.Image, error)) (image.Image, error)
	// OpenCache returns a directory that builds share, see
	// image.Store.OpenCache.
	OpenCache(ctx context.Context, id string, sharing image.Sharing) (*image.Cache, error)
}

var _ Images = (*image.Store)(nil)

// Step is what one instruction needs of a sandbox.
type Step struct {
	Name   string
	Labels sandbox.Labels
	// Base has the layers of the sandbox's root. Its settings do not count.
	Base image.Image
	// Network is public or none.
	Network sandbox.NetworkMode
	// Mounts, when not nil, receives a directory on the host that belongs to the
	// sandbox and goes with it, and returns the mounts that the step needs.
	Mounts func(dir string) ([]sandbox.Mount, error)

	release func() error // called when the sandbox is gone; may be nil
}

// Runner gives steps a sandbox to work in.
type Runner interface {
	// Step starts a sandbox and calls work. When work returns nil the sandbox
	// is ended, and keep receives the upper directory of the overlay that was
	// its root: what work changed in the form that image.Store.Commit takes.
	// Commands have PATH and HOME, but otherwise no environment of their own.
	// In any case the sandbox is gone when Step returns.
	Step(ctx context.Context, step Step, work func(ctx context.Context, sb sandbox.Sandbox) error,
		keep func(ctx context.Context, upper string) error) error
}

// Builder builds images into a store. Its methods may be called concurrently.
type Builder struct {
	images Images
	runner Runner
	arch   string // in Go's words
}

// New makes a builder of images for this machine's architecture.
func New(images Images, runner Runner) *Builder {
	return &Builder{images: images, runner: runner, arch: runtime.GOARCH}
}

// Request says what to build.
type Request struct {
	// ContextDir is a directory on the host that holds the Dockerfile.
	ContextDir string
	// Name of the image in messages.
	Name string
	// Timeout bounds the build; 0 means only the context bounds it.
	Timeout time.Duration
	// Fresh builds every step anew.
	Fresh bool
	// Labels of the sandboxes that steps run in.
	Labels sandbox.Labels
	// Progress, when set, receives what is being done, from one goroutine at a
	// time.
	Progress func(message string)
}

var errTimeout = errors.New("the build's time is up")

// Build returns the image of a context, and builds it unless the store has it
// already. Errors are *sandbox.BuildError; those about the Dockerfile name the
// line, and wrap sandbox.ErrUnsupported where it asks for what is not
// supported.
func (b *Builder) Build(ctx context.Context, req Request) (image.Image, error) {
	if req.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, req.Timeout, fmt.Errorf("%w: %v", errTimeout, req.Timeout))
		defer cancel()
	}
	img, err := b.build(ctx, req)
	if err == nil {
		return img, nil
	}
	failed := &sandbox.BuildError{Image: req.Name, Err: err}
	if f, ok := errors.AsType[*runError](err); ok {
		failed.Log = f.log
	}
	if ctx.Err() != nil {
		failed.Err = context.Cause(ctx)
	}
	return image.Image{}, failed
}

func (b *Builder) build(ctx context.Context, req Request) (image.Image, error) {
	say := req.Progress
	if say == nil {
		say = func(string) {}
	}
	files, err := buildcontext.Read(req.ContextDir)
	if err != nil {
		return image.Image{}, err
	}
	text, err := buildcontext.ReadDockerfile(req.ContextDir)
	if err != nil {
		return image.Image{}, err
	}
	p, err := parse(text, b.arch)
	if err != nil {
		return image.Image{}, err
	}
	if err := p.check(); err != nil {
		return image.Image{}, err
	}
	bases := map[string]image.Image{}
	for _, ref := range p.images() {
		if bases[ref.name], err = b.images.Pull(ctx, ref.name, say); err != nil {
			return image.Image{}, atLine(ref.line, "", err)
		}
	}
	dir, err := filepath.Abs(req.ContextDir)
	if err != nil {
		return image.Image{}, fmt.Errorf("building %q: %w", req.Name, err)
	}
	cached := ""
	if strings.Contains(string(text), "--mount") { // its type can be a variable
		cached = dir
	}
	key, err := finalKey(files, cached, b.arch, bases)
	if err != nil {
		return image.Image{}, err
	}
	return b.images.Make(ctx, key, req.Fresh, say, func(ctx context.Context, say func(string)) (image.Image, error) {
		say("building " + req.Name)
		root, err := openContext(req.ContextDir, files)
		if err != nil {
			return image.Image{}, err
		}
		defer root.close()
		w := &worker{builder: b, req: req, contextDir: dir, context: root, bases: bases, say: say, total: p.steps()}
		st, err := p.evaluate(ctx, w)
		if err != nil {
			return image.Image{}, err
		}
		return b.images.Commit(ctx, st.image, "", st.changes())
	})
}
