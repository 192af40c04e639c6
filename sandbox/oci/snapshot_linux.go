package oci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/rootfs"
	"github.com/proctor-run/proctor/sandbox/oci/internal/rootplan"
	"github.com/proctor-run/proctor/sandbox/oci/internal/storage"
)

// layer holds what the commands of a sandbox had written when a snapshot was
// taken: its upper directories, one for each part of the root file system, which
// nobody writes to any more. Deletions and replaced directories are marked in
// them as overlays do. It has a directory and a record like a sandbox, so that it
// is found when its owner was killed.
type layer struct {
	backend *Backend
	dir     string
	parts   []string // paths of the parts in the sandbox, in their order
	size    int64    // bytes on the disk

	mu    sync.Mutex
	users int
}

// hold counts one more user.
func (l *layer) hold() *layer {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.users++
	return l
}

// release counts one user less; the last one's removes the directory. After an
// error the user still is one.
func (l *layer) release(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users > 1 {
		l.users--
		return nil
	}
	if err := l.backend.removeDir(ctx, l.dir); err != nil {
		return err
	}
	l.users = 0
	return nil
}

// upper is the directory that belongs to a part.
func (l *layer) upper(part int) string {
	return filepath.Join(l.dir, rootplan.DirUpper, strconv.Itoa(part))
}

// putOn puts the layers of snapshots, highest first, on a root file system for a
// sandbox in dir, and gives its upper directories the attributes that the merged
// ones had.
func (b *Backend) putOn(root *rootfs.Root, stack []*layer, dir string) error {
	if len(stack) == 0 {
		return nil
	}
	for i := range root.Parts {
		p := &root.Parts[i]
		for _, l := range stack {
			if len(l.parts) != len(root.Parts) || l.parts[i] != p.Path {
				return errors.New("the host's mounts have changed since the snapshot was taken")
			}
			p.Stack = append(p.Stack, l.upper(i))
		}
		if b.opts.OwnRoot { // whose root the layers lie in
			p.Base = filepath.Join(dir, dirBase, strconv.Itoa(i))
			if err := os.MkdirAll(p.Base, 0o700); err != nil {
				return err
			}
		}
		info, err := os.Lstat(p.Stack[0])
		if err != nil {
			return err
		}
		p.Mode = info.Mode() &^ fs.ModeType
		if st, ok := info.Sys().(*syscall.Stat_t); ok && b.root {
			p.UID, p.GID = int(st.Uid), int(st.Gid)
			if err := os.Lchown(p.Upper, p.UID, p.GID); err != nil {
				return err
			}
		}
		if err := os.Chmod(p.Upper, p.Mode); err != nil {
			return err
		}
	}
	return nil
}

// snapshot is a sandbox's root file system at one moment.
type snapshot struct {
	backend *Backend
	name    string
	base    *base // with the stack

	mu       sync.Mutex
	released int // how many of the stack's layers
	closed   bool
}

// CanSnapshot is ErrUnsupported with gVisor, because what its sandboxes write is in a
// file of the gVisor kernel's own format, from which no other kernel can begin, and
// where the host's root cannot be one overlay on another: for ordinary users, when a part
// of the system is a file system of its own, and when the root is an overlay itself. Any other error is that of a sandbox that
// does not run.
func (r *renewable) CanSnapshot() error {
	if !r.backend.runtime.Snapshots() {
		return fmt.Errorf("runtime %q keeps what is written in its own kernel: %w", r.backend.runtime.Name(), sandbox.ErrUnsupported)
	}
	now, err := r.running()
	if err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(now.dir, rootplan.DirMemory)); err == nil {
		return fmt.Errorf("the file system of %q cannot hold what sandboxes write; put the state directory on a disk with ext4, xfs or btrfs: %w",
			r.backend.opts.StateDir, sandbox.ErrUnsupported)
	}
	if len(now.parts) != 1 {
		return fmt.Errorf("the host's root is put together of %d parts here, between which things are written too: %w", len(now.parts), sandbox.ErrUnsupported)
	}
	var st unix.Statfs_t
	if r.backend.opts.OwnRoot && unix.Statfs("/", &st) == nil && st.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return fmt.Errorf("the host's root is an overlay, and the kernel takes one more on it, not two: %w", sandbox.ErrUnsupported)
	}
	return nil
}

// Snapshot ends everything in the sandbox, and continues with the same files on
// top of what was written so far. Nothing is copied.
func (r *renewable) Snapshot(ctx context.Context, name string) (sandbox.Snapshot, error) {
	fail := func(err error) (sandbox.Snapshot, error) {
		return nil, fmt.Errorf("taking snapshot %q of sandbox %q: %w", name, r.id, err)
	}
	release, err := r.hold(ctx)
	if err != nil {
		return fail(err)
	}
	defer release()
	ctx, cancel := r.until(ctx)
	defer cancel()
	if err := r.CanSnapshot(); err != nil {
		return fail(err)
	}
	old, err := r.running()
	if err != nil {
		return fail(err)
	}
	// A spare life has mounts of its own and stays as it is: Reset does not go to
	// the snapshot.
	r.mu.Lock()
	r.life = nil
	r.mu.Unlock()
	r.old = append(r.old, old)
	now, err := r.seal(ctx, old, name)
	if err != nil {
		return fail(err)
	}
	next, err := r.backend.start(ctx, r.spec, now)
	if err := r.replace(next, err); err != nil {
		return fail(err)
	}
	r.tidy() //nolint:contextcheck // what is removed outlives who asked
	shot := &snapshot{backend: r.backend, name: name, base: now}
	for _, l := range now.stack {
		l.hold()
	}
	return shot, nil
}

// seal ends a life and makes what it has written a layer. The base that it
// returns begins with it.
func (r *renewable) seal(ctx context.Context, old *Sandbox, name string) (*base, error) {
	old.shutRelays()
	old.mu.Lock()
	err := old.end(ctx)
	old.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if old.net != nil {
		old.net.Close() // two lives would write to one log of connections
	}
	owner := r.spec.Labels.Owner
	if owner == (procid.ID{}) {
		owner = r.backend.owner
	}
	id := newID()
	dir, err := newRecord(r.backend.opts.StateDir, record{
		ID: id, Name: "snapshot " + name + " of " + r.spec.Name, Backend: r.backend.Name(), Runtime: r.backend.runtime.Name(),
		Job: r.spec.Labels.Job, Trial: r.spec.Labels.Trial, Owner: owner,
	})
	if err != nil {
		return nil, err
	}
	top := &layer{backend: r.backend, dir: dir, parts: old.parts}
	r.held = append(r.held, top.hold())
	// The runtime is gone, and with it the namespace in which this was mounted.
	if err := os.Rename(filepath.Join(old.dir, rootplan.DirUpper), filepath.Join(dir, rootplan.DirUpper)); err != nil {
		return nil, err
	}
	if top.size, err = storage.Size(ctx, filepath.Join(dir, rootplan.DirUpper)); err != nil {
		return nil, err
	}
	now := *r.base
	now.stack = append([]*layer{top}, old.stack...)
	return &now, nil
}

// Name is the one that it was given.
func (s *snapshot) Name() string { return s.name }

// Size is what the topmost layer takes.
func (s *snapshot) Size() int64 { return s.base.stack[0].size }

// Fork makes a sandbox that begins with the snapshot's files.
func (s *snapshot) Fork(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	fail := func(err error) (sandbox.Sandbox, error) {
		return nil, fmt.Errorf("forking sandbox %q from snapshot %q: %w", spec.Name, s.name, err)
	}
	if ctx.Err() != nil {
		return fail(context.Cause(ctx))
	}
	spec = s.backend.complete(spec)
	if err := s.backend.accept(spec); err != nil {
		return fail(err)
	}
	held, err := s.hold()
	if err != nil {
		return fail(err)
	}
	from := *s.base
	from.hostname = ""
	life, err := s.backend.start(ctx, spec, &from)
	if err != nil {
		return fail(errors.Join(err, releaseAll(ctx, held)))
	}
	r := s.backend.renewableOf(life, spec, &from)
	return r, releaseAll(ctx, held) // the sandbox holds them itself
}

// hold keeps the layers while a fork is made.
func (s *snapshot) hold() ([]*layer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the snapshot is released")
	}
	for _, l := range s.base.stack {
		l.hold()
	}
	return s.base.stack, nil
}

func releaseAll(ctx context.Context, layers []*layer) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), destroyLimit)
	defer cancel()
	var errs []error
	for _, l := range layers {
		errs = append(errs, l.release(ctx))
	}
	return errors.Join(errs...)
}

// Release gives the snapshot up. When it fails, a later call continues.
func (s *snapshot) Release(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for ; s.released < len(s.base.stack); s.released++ {
		if err := s.base.stack[s.released].release(ctx); err != nil {
			return fmt.Errorf("releasing snapshot %q: %w", s.name, err)
		}
	}
	return nil
}
