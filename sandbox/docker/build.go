package docker

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/build"
	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/buildcontext"
	"github.com/proctor-run/proctor/sandbox/compose"
	"github.com/proctor-run/proctor/sandbox/internal/engine"
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

// ownDockerfile is the name, in a context, of a Dockerfile that is given as
// text.
const ownDockerfile = ".proctor.Dockerfile"

// built returns the image of the Spec's build context, and builds it unless
// an image of the same content is there.
func (b *Backend) built(ctx context.Context, spec sandbox.Spec) (compose.Image, error) {
	from := spec.Image.Build
	if from.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, from.Timeout, fmt.Errorf("%w: %v", errBuildTimeout, from.Timeout))
		defer cancel()
	}
	return b.builtFrom(ctx, compose.Build{
		Name: from.Name, Dir: from.ContextDir, Force: spec.Image.ForceBuild, Keep: spec.Image.KeepImage,
	}, spec.Progress)
}

// readBuild reads the context of a build and its Dockerfile.
func readBuild(p *compose.Build) (files *buildcontext.Context, text string, err error) {
	if p.Text != "" {
		if files, err = buildcontext.ReadNamed(p.Dir, ""); err != nil {
			return nil, "", err
		}
		p.Dockerfile = ownDockerfile
		files.Add(p.Dockerfile, []byte(p.Text))
		return files, p.Text, nil
	}
	p.Dockerfile = cmp.Or(p.Dockerfile, buildcontext.Dockerfile)
	if files, err = buildcontext.ReadNamed(p.Dir, p.Dockerfile); err != nil {
		return nil, "", err
	}
	text, err = buildcontext.ReadDockerfileNamed(p.Dir, p.Dockerfile)
	return files, text, err
}

// keyOf names what the build makes: the content of the context, and the options
// where there are any.
func keyOf(p *compose.Build, files *buildcontext.Context) (string, error) {
	sum, err := files.Hash("linux")
	if err != nil {
		return "", err
	}
	o := p.Options
	o.NoCache, o.PullParent = false, false
	settings, err := json.Marshal(o)
	if err != nil {
		return "", fmt.Errorf("naming the image by its build's options: %w", err)
	}
	plain, err := json.Marshal(client.ImageBuildOptions{})
	if err != nil {
		return "", fmt.Errorf("naming the image by its build's options: %w", err)
	}
	if p.Dockerfile == buildcontext.Dockerfile && bytes.Equal(settings, plain) {
		return sum, nil
	}
	all := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", sum, p.Dockerfile, settings))
	return hex.EncodeToString(all[:])[:len(sum)], nil
}

// builtFrom returns the image of a build, which is run unless an image of the
// same content is there.
func (b *Backend) builtFrom(ctx context.Context, plan compose.Build, progress func(string)) (compose.Image, error) {
	failed := func(err error) (compose.Image, error) {
		return compose.Image{}, &sandbox.BuildError{Image: plan.Name, Err: err}
	}
	files, text, err := readBuild(&plan)
	if err != nil {
		return failed(err)
	}
	sum, err := keyOf(&plan, files)
	if err != nil {
		return failed(err)
	}
	tag := builtPrefix + sum
	release, fresh, err := b.images.hold(ctx, tag)
	if err != nil {
		return failed(fmt.Errorf("waiting for another build of it: %w", err))
	}
	result := false
	defer func() { release(result) }()

	img, err := b.inspect(ctx, tag)
	switch {
	case err == nil && (fresh || !plan.Force):
		// A new tag on itself says when it was last used.
		err = b.tag(ctx, tag, tag)
	case err == nil, cerrdefs.IsNotFound(err):
		err = b.build(ctx, plan, files, text, tag, progress)
		result = err == nil
		if err == nil {
			img, err = b.inspect(ctx, tag)
			if cerrdefs.IsNotFound(err) {
				err = &sandbox.BuildError{Image: plan.Name, Err: errNoImage}
			}
		}
	}
	if err == nil && plan.Keep {
		err = b.tag(ctx, tag, keptPrefix+sum)
	}
	if err != nil {
		return compose.Image{}, err
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
func (b *Backend) build(ctx context.Context, plan compose.Build, files *buildcontext.Context, text, tag string, progress func(string)) error {
	said := engine.NewReporter(progress, b.now)
	said.Say("building " + plan.Name)
	failed := func(log string, err error) error {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return &sandbox.BuildError{Image: plan.Name, Log: log, Err: err}
	}
	recipe := readRecipe(text, plan.Options.BuildArgs)
	options := plan.Options
	options.Tags = []string{tag}
	options.Dockerfile = plan.Dockerfile
	options.Remove, options.ForceRemove = true, true
	options.Version = build.BuilderV1
	ping, err := b.api.Ping(ctx, client.PingOptions{})
	if err != nil {
		return failed("", err)
	}
	if ping.BuilderVersion == build.BuilderBuildKit || recipe.buildKit {
		options.Version = build.BuilderBuildKit
		// Without a client session BuildKit has no credentials: the
		// engine's own pull has.
		for _, ref := range recipe.bases {
			if _, err := b.pulled(ctx, ref, progress); err != nil && !errors.Is(err, sandbox.ErrImageNotFound) {
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
	log, err := b.stream(ctx, pr, options, said, plan.Name)
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
func (b *Backend) stream(ctx context.Context, files io.Reader, options client.ImageBuildOptions, said *engine.Reporter, name string) (string, error) {
	r, err := b.api.ImageBuild(ctx, files, options)
	if err != nil {
		return "", fmt.Errorf("asking the engine to build: %w", err)
	}
	defer func() { _ = r.Body.Close() }()
	log := engine.NewTail(buildLogTail)
	err = followBuild(r.Body, log, func(step string) { said.Sometimes("building " + name + ": " + step) })
	return log.String(), err
}
