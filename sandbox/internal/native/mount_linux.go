package native

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox/internal/rootfs"
)

// enter makes all mounts and moves the process into them. The host's /proc is
// in use until the host's root goes, so that nothing in the sandbox's root has
// a say in it.
func (s *Setup) enter() error {
	if err := rootfs.Detach(); err != nil {
		return err
	}
	if err := s.Root.Mount(); err != nil {
		return err
	}
	if len(s.Root.Parts) != 1 {
		// What is entered must be a mount.
		if err := unix.Mount(s.Root.Dir, s.Root.Dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("mounting the root file system: %w", err)
		}
	}
	fd, err := unix.Open(s.Root.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening the root file system: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	r := root{fd}
	frozen, err := s.frozen(r)
	defer closeAll(frozen)
	if err != nil {
		return fmt.Errorf("looking for the parts of the root file system: %w", err)
	}
	for _, m := range s.Mounts {
		if err := r.mount(m); err != nil {
			return fmt.Errorf("mounting %q: %w", m.Target, err)
		}
		if m.Target == "/dev" {
			if err := r.devices(s.UserNS); err != nil {
				return fmt.Errorf("making devices: %w", err)
			}
		}
	}
	if err := r.seal(s.Mounts); err != nil {
		return err
	}
	if err := r.protect(s.Masked, s.ReadOnly); err != nil {
		return err
	}
	for _, part := range frozen {
		if err := rootfs.RestrictOne(part, unix.MS_RDONLY); err != nil {
			return fmt.Errorf("making the root file system read-only: %w", err)
		}
	}
	return pivot(fd)
}

// frozen opens the mounts of the root file system that become read-only when all others
// are made, which stay as they are, also those below a part or in its place.
func (s *Setup) frozen(r root) ([]int, error) {
	if !s.ReadOnlyRoot {
		return nil, nil
	}
	var mounts []int
	for _, name := range append([]string{"/"}, s.Root.Below()...) {
		fd, err := rootfs.Lookup(r.fd, name, rootfs.MakeNothing)
		if err != nil {
			return mounts, err
		}
		mounts = append(mounts, fd)
	}
	return mounts, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// root is the root directory of the sandbox, seen from outside.
type root struct{ fd int }

func (r root) mount(m Mount) error {
	if m.Type == "" {
		return r.bind(m)
	}
	fd, err := rootfs.Lookup(r.fd, m.Target, rootfs.MakeDir)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Mount(m.Source, rootfs.Descriptor(fd), m.Type, m.Flags, m.Data); err != nil {
		return fmt.Errorf("a file system %q: %w", m.Type, err)
	}
	return nil
}

// bind shows a file or directory of the host.
func (r root) bind(m Mount) error {
	from, err := unix.Open(m.Source, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %q: %w", m.Source, err)
	}
	defer func() { _ = unix.Close(from) }()
	create := rootfs.MakeFile
	if isDir(from) {
		create = rootfs.MakeDir
	}
	to, err := rootfs.Lookup(r.fd, m.Target, create)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(to) }()
	if err := unix.Mount(rootfs.Descriptor(from), rootfs.Descriptor(to), "", unix.MS_BIND|m.Flags&unix.MS_REC, ""); err != nil {
		return fmt.Errorf("binding %q: %w", m.Source, err)
	}
	if flags := m.Flags &^ unix.MS_REC; flags != 0 {
		return r.restrict(m.Target, flags, rootfs.Restrict)
	}
	return nil
}

// restrict adds flags to what is mounted at a path: with rootfs.Restrict also to what
// is mounted below it.
func (r root) restrict(name string, flags uintptr, how func(fd int, flags uintptr) error) error {
	fd, err := rootfs.Lookup(r.fd, name, rootfs.MakeNothing)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return how(fd, flags)
}

// seal makes the mounts read-only that were not while others were made in them.
func (r root) seal(mounts []Mount) error {
	for _, m := range mounts {
		if !m.Seal {
			continue
		}
		if err := r.restrict(m.Target, unix.MS_RDONLY, rootfs.RestrictOne); err != nil {
			return fmt.Errorf("making %q read-only: %w", m.Target, err)
		}
	}
	return nil
}

func isDir(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// protect hides the masked paths and keeps the others from being written.
func (r root) protect(masked, readOnly []string) error {
	empty := -1 // the first masked directory, which the others show too
	defer func() { _ = unix.Close(empty) }()
	for _, name := range masked {
		if err := r.mask(name, &empty); err != nil {
			return fmt.Errorf("masking %q: %w", name, err)
		}
	}
	for _, name := range readOnly {
		if err := r.freeze(name); err != nil {
			return fmt.Errorf("making %q read-only: %w", name, err)
		}
	}
	return nil
}

func missing(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }

func (r root) mask(name string, empty *int) error {
	fd, err := rootfs.Lookup(r.fd, name, rootfs.MakeNothing)
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	switch {
	case !isDir(fd):
		return os.NewSyscallError("mount", unix.Mount("/dev/null", rootfs.Descriptor(fd), "", unix.MS_BIND, ""))
	case *empty >= 0:
		return os.NewSyscallError("mount", unix.Mount(rootfs.Descriptor(*empty), rootfs.Descriptor(fd), "", unix.MS_BIND, ""))
	}
	if err := unix.Mount("tmpfs", rootfs.Descriptor(fd), "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=4k"); err != nil {
		return fmt.Errorf("mounting an empty directory: %w", err)
	}
	*empty, err = rootfs.Lookup(r.fd, name, rootfs.MakeNothing)
	return err
}

func (r root) freeze(name string) error {
	fd, err := rootfs.Lookup(r.fd, name, rootfs.MakeNothing)
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Mount(rootfs.Descriptor(fd), rootfs.Descriptor(fd), "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("binding it: %w", err)
	}
	return r.restrict(name, unix.MS_RDONLY, rootfs.Restrict)
}

// pivot makes the directory the root of the process and its namespace, and the
// host's root goes (pivot_root(2), notes).
func pivot(newRoot int) error {
	old, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening the host's root: %w", err)
	}
	defer func() { _ = unix.Close(old) }()
	if err := unix.Fchdir(newRoot); err != nil {
		return fmt.Errorf("entering the root file system: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("changing the root file system: %w", err)
	}
	if err := unix.Fchdir(old); err != nil {
		return fmt.Errorf("entering the host's root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmounting the host's root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return fmt.Errorf("entering the root file system: %w", err)
	}
	// What the host mounts from now on below a directory that the sandbox shows
	// is not the sandbox's.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("detaching mounts from the host: %w", err)
	}
	return nil
}
