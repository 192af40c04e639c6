package oci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/ownkernel"
	"github.com/proctor-run/proctor/sandbox/internal/rootfs"
	"github.com/proctor-run/proctor/sandbox/oci/build"
	"github.com/proctor-run/proctor/sandbox/oci/image"
	"github.com/proctor-run/proctor/sandbox/oci/internal/network"
	"github.com/proctor-run/proctor/sandbox/oci/internal/rootplan"
	"github.com/proctor-run/proctor/sandbox/oci/internal/runtimes"
)

// stepRunner gives the steps of builds sandboxes of a backend.
type stepRunner struct{ b *Backend }

var _ build.Runner = stepRunner{}

// Step runs a step in a sandbox of its own.
func (r stepRunner) Step(ctx context.Context, step build.Step, work func(context.Context, sandbox.Sandbox) error,
	keep func(ctx context.Context, upper string) error,
) (err error) {
	spec := sandbox.Spec{Name: step.Name, Labels: step.Labels, Network: sandbox.Network{Mode: step.Network}}
	from := &base{layers: step.Base.Dirs(), userXattr: step.Base.UserXattr || !r.b.root, layer: true, mounts: step.Mounts}
	s, err := r.b.start(ctx, spec, from)
	if err != nil {
		return fmt.Errorf("starting a sandbox: %w", err)
	}
	defer func() {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), destroyLimit)
		defer cancel()
		err = errors.Join(err, s.Destroy(cleanup))
	}()
	if err := work(ctx, s); err != nil {
		return err
	}
	upper, err := s.takeUpper(ctx, step.Base)
	if err != nil {
		return err
	}
	return keep(ctx, upper)
}

// takeUpper ends the sandbox and returns the directory of what its commands
// wrote, without what belongs to the sandbox and not to the image that is made of base.
func (s *Sandbox) takeUpper(ctx context.Context, base image.Image) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.end(ctx); err != nil {
		return "", fmt.Errorf("ending the sandbox: %w", err)
	}
	s.process = nil
	if _, err := os.Lstat(filepath.Join(s.dir, rootplan.DirMemory)); !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("building an image: the file system of %q cannot hold the upper layer of an overlay; put the state directory on a disk with ext4, xfs or btrfs",
			s.backend.opts.StateDir)
	}
	upper := filepath.Join(s.dir, rootplan.DirUpper, "0")
	root, err := os.OpenRoot(upper) // commands decided what is in it
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	for name := range network.Identity("", network.None, func(string) (rootfs.Entry, bool) { return rootfs.Entry{}, false }) {
		if name == "/" || filepath.Dir(name) == "/" {
			continue // directories
		}
		if err := root.Remove(name[1:]); err != nil && !gone(err) {
			return "", err
		}
	}
	if s.backend.runtime.OwnKernel() {
		if err := forgetTmp(root, base); err != nil {
			return "", err
		}
	}
	return upper, root.RemoveAll(filepath.Dir(runtimes.GuestPath)[1:])
}

// forgetTmp removes from an upper directory what kept gVisor from a "/tmp" of its own, in
// which all that commands write is lost, and the directory that it makes for one where
// the image has none.
func forgetTmp(root *os.Root, base image.Image) error {
	if err := root.Remove(ownkernel.Placeholder[1:]); err != nil && !gone(err) {
		return err
	}
	tmp := path.Dir(ownkernel.Placeholder)[1:]
	if _, err := base.Files().Lstat(tmp); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := root.Remove(tmp); err != nil && !gone(err) {
		return err
	}
	return nil
}

// gone reports whether a name leads nowhere, also when what leads there is a file
// or a link out of the directory.
func gone(err error) bool {
	pe, ok := errors.AsType[*fs.PathError](err)
	return errors.Is(err, fs.ErrNotExist) || ok && pe.Err != nil && !errors.Is(err, fs.ErrPermission)
}

// explainBuild says to ordinary users what the commands of their builds lack.
func (b *Backend) explainBuild(err error) error {
	failed, ok := errors.AsType[*sandbox.BuildError](err)
	if !ok || b.root || failed.Log == "" {
		return err
	}
	return &sandbox.BuildError{
		Image: failed.Image, Log: failed.Log,
		Err: fmt.Errorf("%w (without root a build has no user but root: where it needs others, run proctor as root, or use -e docker)", failed.Err),
	}
}
