package oci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/guest"
	"github.com/proctor-run/proctor/sandbox/oci/build"
	"github.com/proctor-run/proctor/sandbox/oci/image"
)

// base is what a sandbox starts from: the layers of backend "sandbox", and how
// commands run in them.
type base struct {
	layers    []string // highest first
	userXattr bool
	env       []string
	user      string
	workdir   string
	// entrypoint is the image's, empty for none. image names the image.
	entrypoint []string
	image      string
	// stack are the layers of snapshots on top of all that, highest first.
	stack []*layer
	// hostname of the sandbox; empty means its id.
	hostname string
	// layer: what commands write becomes a layer, so that it has to be in the
	// upper directory, and to mean the same on its own.
	layer bool
	// mounts besides those of the Spec; dir goes with the sandbox.
	mounts func(dir string) ([]sandbox.Mount, error)
}

// base finds the image of a Spec, or for backend "host" what its Dockerfile
// says about commands.
func (b *Backend) base(ctx context.Context, spec sandbox.Spec) (*base, error) {
	if b.opts.OwnRoot {
		return b.hostBase(ctx, spec)
	}
	return b.imageBase(ctx, spec)
}

func (b *Backend) hostBase(ctx context.Context, spec sandbox.Spec) (*base, error) {
	out := &base{userXattr: !b.root}
	if spec.Image.Build == nil {
		return out, nil
	}
	says, err := build.Describe(ctx, spec.Image.Build.ContextDir)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, &sandbox.BuildError{Image: spec.Image.Build.Name, Err: err}
	}
	out.env, out.workdir = says.Env, says.Workdir
	return out, nil
}

func (b *Backend) imageBase(ctx context.Context, spec sandbox.Spec) (*base, error) {
	if b.opts.Images == nil {
		return nil, fmt.Errorf("image %q: %w: no image store is set up", spec.Image.Ref, sandbox.ErrImageNotFound)
	}
	from := spec.Image.Build
	if from == nil || (spec.Image.Ref != "" && !spec.Image.ForceBuild) {
		if spec.Image.Ref == "" {
			return nil, errors.New("no image is named")
		}
		m, err := b.opts.Images.Pull(ctx, spec.Image.Ref, spec.Progress)
		return b.on(m), err
	}
	m, err := build.New(b.opts.Images, stepRunner{b}).Build(ctx, build.Request{
		ContextDir: from.ContextDir, Name: from.Name, Timeout: from.Timeout, Fresh: spec.Image.ForceBuild,
		Labels: spec.Labels, Progress: spec.Progress,
	})
	return b.on(m), b.explainBuild(err)
}

func (b *Backend) on(m image.Image) *base {
	return &base{
		layers: m.Dirs(), userXattr: m.UserXattr || !b.root,
		env: m.Config.Env, user: m.Config.User, workdir: m.Config.Workdir,
		entrypoint: m.Config.Entrypoint, image: m.ID,
	}
}

// guestOptions merges the image's settings with those of the Spec.
func (b *base) guestOptions(build string, spec sandbox.Spec) guest.Options {
	o := guest.Options{Build: build, Env: sandbox.MergeEnv(b.env, spec.Env), User: b.user, Workdir: b.workdir, Powerless: spec.Hardened}
	if spec.User != "" {
		o.User = spec.User
	}
	if spec.Workdir != "" {
		o.Workdir = spec.Workdir
	}
	return o
}
