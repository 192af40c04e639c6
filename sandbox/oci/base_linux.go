package oci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/guest"
)

// base is what a sandbox starts from: the layers of backend "sandbox", and how
// commands run in them.
type base struct {
	layers    []string // highest first
	userXattr bool
	env       []string
	user      string
	workdir   string
}

// base finds the image of a Spec, or for backend "host" what its Dockerfile
// says about commands.
func (b *Backend) base(ctx context.Context, spec sandbox.Spec) (*base, error) {
	if b.opts.Host {
		return b.hostBase(spec)
	}
	return b.imageBase(ctx, spec)
}

func (b *Backend) hostBase(spec sandbox.Spec) (*base, error) {
	out := &base{userXattr: !b.root}
	if spec.Image.Build == nil {
		return out, nil
	}
	r, err := readRecipe(spec.Image.Build.ContextDir)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, &sandbox.BuildError{Image: spec.Image.Build.Name, Err: err}
	}
	out.env, out.workdir = r.env, r.workdir
	return out, nil
}

func (b *Backend) imageBase(ctx context.Context, spec sandbox.Spec) (*base, error) {
	ref, r := spec.Image.Ref, (*recipe)(nil)
	if spec.Image.Build != nil && (ref == "" || spec.Image.ForceBuild) {
		var err error
		if r, err = readRecipe(spec.Image.Build.ContextDir); err != nil {
			return nil, &sandbox.BuildError{Image: spec.Image.Build.Name, Err: err}
		}
		if r.builds != "" {
			return nil, fmt.Errorf("building an image with a %s instruction: %w; use backend \"docker\", or an image that is built already",
				r.builds, sandbox.ErrUnsupported)
		}
		ref = r.from
	}
	out := &base{userXattr: !b.root}
	if ref != "scratch" {
		if err := b.pull(ctx, ref, spec, out); err != nil {
			return nil, err
		}
	}
	out.extend(r)
	return out, nil
}

func (b *Backend) pull(ctx context.Context, ref string, spec sandbox.Spec, out *base) error {
	if ref == "" {
		return errors.New("no image is named")
	}
	if b.opts.Images == nil {
		return fmt.Errorf("image %q: %w: no image store is set up", ref, sandbox.ErrImageNotFound)
	}
	m, err := b.opts.Images.Pull(ctx, ref, spec.Progress)
	if err != nil {
		return err
	}
	*out = base{
		layers: m.Dirs(), userXattr: m.UserXattr || !b.root,
		env: m.Config.Env, user: m.Config.User, workdir: m.Config.Workdir,
	}
	return nil
}

// extend applies what a Dockerfile without a build says about an image.
func (b *base) extend(r *recipe) {
	if r == nil {
		return
	}
	b.env = slices.Concat(b.env, r.env)
	if r.user != "" {
		b.user = r.user
	}
	if r.workdir != "" {
		b.workdir = r.workdir
	}
}

// guestOptions merges the image's settings with those of the Spec.
func (b *base) guestOptions(build string, spec sandbox.Spec) guest.Options {
	o := guest.Options{Build: build, Env: latest(slices.Concat(b.env, spec.Env)), User: b.user, Workdir: b.workdir}
	if spec.User != "" {
		o.User = spec.User
	}
	if spec.Workdir != "" {
		o.Workdir = spec.Workdir
	}
	return o
}
