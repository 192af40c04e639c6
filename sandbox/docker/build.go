package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/build"
	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/buildcontext"
)

// Names of built images. The second is a further name of those that Collect
// has to leave.
const (
	builtPrefix = "proctor-build:"
	keptPrefix  = "proctor-keep:"
)

// buildLogTail is how much of a build's output an error shows.
const buildLogTail = 8 << 10

var errBuildTimeout = errors.New("the build's time is up")

// built returns the image of the Spec's build context, and builds it unless
// an image of the same content is there.
func (b *Backend) built(ctx context.Context, spec sandbox.Spec) (image, error) {
	from := spec.Image.Build
	if from.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, from.Timeout, fmt.Errorf("%w: %v", errBuildTimeout, from.Timeout))
		defer cancel()
	}
	files, err := buildcontext.Read(from.ContextDir)
	if err != nil {
		return image{}, &sandbox.BuildError{Image: from.Name, Err: err}
	}
	sum, err := files.Hash("linux")
	if err != nil {
		return image{}, &sandbox.BuildError{Image: from.Name, Err: err}
	}
	tag := builtPrefix + sum
	release, fresh, err := b.images.hold(ctx, tag)
	if err != nil {
		return image{}, &sandbox.BuildError{Image: from.Name, Err: fmt.Errorf("waiting for another build of it: %w", err)}
	}
	result := false
	defer func() { release(result) }()

	img, err := b.inspect(ctx, tag)
	switch {
	case err == nil && (fresh || !spec.Image.ForceBuild):
		// A new tag on itself says when it was last used.
		err = b.tag(ctx, tag, tag)
	case err == nil, cerrdefs.IsNotFound(err):
		err = b.build(ctx, spec, files, tag)
		result = err == nil
		if err == nil {
			img, err = b.inspect(ctx, tag)
			if cerrdefs.IsNotFound(err) {
				err = &sandbox.BuildError{Image: from.Name, Err: errNoImage}
			}
		}
	}
	if err == nil && spec.Image.KeepImage {
		err = b.tag(ctx, tag, keptPrefix+sum)
	}
	if err != nil {
		return image{}, err
	}
	return img, nil
}

func (b *Backend) tag(ctx context.Context, source, target string) error {
	if _, err := b.api.ImageTag(ctx, client.ImageTagOptions{Source: source, Target: target}); err != nil {
		return fmt.Errorf("tagging image %s: %w", source, err)
	}
	return nil
}

// build has the engine build the context. It uses the engine's own choice of
// builder, and BuildKit where the Dockerfile needs it.
func (b *Backend) build(ctx context.Context, spec sandbox.Spec, files *buildcontext.Context, tag string) error {
	name := spec.Image.Build.Name
	said := &reporter{tell: spec.Progress}
	said.say("building " + name)
	failed := func(log string, err error) error {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return &sandbox.BuildError{Image: name, Log: log, Err: err}
	}
	text, err := buildcontext.ReadDockerfile(spec.Image.Build.ContextDir)
	if err != nil {
		return failed("", err)
	}
	recipe := readRecipe(text)
	options := client.ImageBuildOptions{
		Tags:        []string{tag},
		Dockerfile:  buildcontext.Dockerfile,
		Remove:      true,
		ForceRemove: true,
		Version:     build.BuilderV1,
	}
	ping, err := b.api.Ping(ctx, client.PingOptions{})
	if err != nil {
		return failed("", err)
	}
	if ping.BuilderVersion == build.BuilderBuildKit || recipe.buildKit {
		options.Version = build.BuilderBuildKit
		// Without a client session BuildKit has no credentials: the
		// engine's own pull has.
		for _, ref := range recipe.bases {
			if _, err := b.pulled(ctx, ref, spec.Progress); err != nil && !errors.Is(err, sandbox.ErrImageNotFound) {
				return failed("", err)
			}
		}
	}
	pr, pw := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := files.Tar(pw)
		pw.CloseWithError(err)
		written <- err
	}()
	log, err := b.stream(ctx, pr, options, said, name)
	pr.CloseWithError(errStopped)
	if e := <-written; e != nil && !errors.Is(e, errStopped) {
		err = e
	}
	if err != nil {
		return failed(log, err)
	}
	return nil
}

// stream sends the context and follows the build's output to its end.
func (b *Backend) stream(ctx context.Context, files io.Reader, options client.ImageBuildOptions, said *reporter, name string) (string, error) {
	r, err := b.api.ImageBuild(ctx, files, options)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	log := &tail{limit: buildLogTail}
	err = followBuild(r.Body, log, func(step string) { said.sometimes("building " + name + ": " + step) })
	return log.String(), err
}

// tail keeps the end of what is written to it.
type tail struct {
	limit int
	buf   []byte
	cut   bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - t.limit; over > 0 {
		t.buf, t.cut = append(t.buf[:0], t.buf[over:]...), true
	}
	return len(p), nil
}

func (t *tail) String() string {
	text := strings.ToValidUTF8(string(t.buf), "\uFFFD")
	if !t.cut {
		return text
	}
	// Not from the middle of a line.
	if _, rest, found := strings.Cut(text, "\n"); found {
		text = rest
	}
	return "[…]\n" + text
}
