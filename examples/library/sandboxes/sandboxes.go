// Package sandboxes opens the backends that come with proctor. Programs choose
// among them; libraries take a sandbox.Backend.
package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/compose"
	"github.com/proctor-run/proctor/sandbox/docker"
	"github.com/proctor-run/proctor/sandbox/egress/tunnel"
	"github.com/proctor-run/proctor/sandbox/guest"
	"github.com/proctor-run/proctor/sandbox/oci"
	"github.com/proctor-run/proctor/sandbox/oci/build"
	"github.com/proctor-run/proctor/sandbox/oci/image"
	"github.com/proctor-run/proctor/sandbox/oci/runsc"
)

// Inner does the work of the helpers that backend "sandbox" runs, which are this
// program itself. It is the first thing in main:
//
//	if code, inner := sandboxes.Inner(os.Args); inner {
//		os.Exit(code)
//	}
func Inner(args []string) (code int, inner bool) {
	if len(args) > 0 && filepath.Base(args[0]) == oci.GuestArg0 {
		return guest.Program(args[1:], os.Stdin, os.Stdout, os.Stderr, version), true
	}
	if code, inner := runsc.Reexec(args, version); inner {
		return code, true
	}
	return oci.Reexec(args)
}

// version is the same outside and inside of a sandbox: both are this program.
const version = "sandboxes 1"

// Open returns the container engine of this machine where one answers, else
// sandboxes without a daemon that keep their files below dir. The function that
// it returns closes the backend. A program that is its own guest is built with
// CGO_ENABLED=0.
func Open(ctx context.Context, dir string) (sandbox.Backend, func() error, error) {
	engine, err := docker.New(docker.Options{Getenv: os.Getenv, Environ: os.Environ()})
	if err == nil {
		err = engine.Check(ctx)
	}
	if err == nil {
		return engine, func() error { return nil }, nil
	}
	if !errors.Is(err, sandbox.ErrUnavailable) {
		return nil, nil, err
	}
	return open(dir)
}

func open(dir string) (sandbox.Backend, func() error, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	images, err := image.Open(filepath.Join(dir, "images"), image.Options{})
	if err != nil {
		return nil, nil, err
	}
	b, err := oci.New(oci.Options{
		StateDir: filepath.Join(dir, "state"), Executable: executable, Build: version, Images: images,
	})
	if err != nil {
		return nil, nil, errors.Join(err, images.Close())
	}
	return b, images.Close, nil
}

// Check reports whether a Spec can be carried out, before anything is made of
// it.
func Check(ctx context.Context, b sandbox.Backend, spec sandbox.Spec) error {
	if spec.Compose != nil {
		if !b.Capabilities().Compose {
			return fmt.Errorf("compose projects: %w", sandbox.ErrUnsupported)
		}
		return compose.Accepts(spec)
	}
	if spec.Image.Build == nil {
		return nil
	}
	_, err := build.Describe(ctx, spec.Image.Build.ContextDir)
	return err
}

// StreamMemory is how much memory a proxy of one's own needs for each connection
// out of a sandbox, in bytes.
func StreamMemory() int { return 2 * tunnel.Window }
