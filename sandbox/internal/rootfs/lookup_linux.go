package rootfs

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// What Lookup makes where a path is missing.
const (
	MakeNothing = iota
	MakeDir
	MakeFile
)

// maxLinks bounds the links of a path, as the kernel does.
const maxLinks = 40

// aboveStandard is the lowest descriptor that Lookup returns: those below have a
// meaning for what is executed.
const aboveStandard = 3

// Lookup opens a path as a process whose root directory is root would find it:
// no link leads out of it, also not those of /proc. The descriptor only names
// the file (O_PATH).
func Lookup(root int, name string, create int) (int, error) {
	w := walker{dirs: []int{root}, rest: strings.Split(name, "/")}
	defer w.close()
	for len(w.rest) > 0 {
		if err := w.step(create); err != nil {
			return -1, &os.PathError{Op: "open", Path: name, Err: err}
		}
	}
	fd, err := unix.FcntlInt(uintptr(w.top()), unix.F_DUPFD_CLOEXEC, aboveStandard)
	if err != nil {
		return -1, &os.PathError{Op: "dup", Path: name, Err: err}
	}
	return fd, nil
}

// walker is on its way along a path.
type walker struct {
	dirs  []int // from the root, which is not the walker's, to where it is
	rest  []string
	links int
}

func (w *walker) top() int { return w.dirs[len(w.dirs)-1] }

func (w *walker) close() { w.backTo(1) }

func (w *walker) backTo(n int) {
	for _, fd := range w.dirs[n:] {
		_ = unix.Close(fd) // nothing was written
	}
	w.dirs = w.dirs[:n]
}

func (w *walker) step(create int) error {
	name := w.rest[0]
	w.rest = w.rest[1:]
	switch name {
	case "", ".":
		return nil
	case "..":
		w.backTo(max(1, len(w.dirs)-1))
		return nil
	}
	const flags = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(w.top(), name, flags, 0)
	if errors.Is(err, unix.ENOENT) && create != MakeNothing {
		if err := w.make(name, create); err != nil {
			return err
		}
		fd, err = unix.Openat(w.top(), name, flags, 0)
	}
	if err != nil {
		return os.NewSyscallError("openat", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		w.dirs = append(w.dirs, fd)
		return os.NewSyscallError("fstat", err)
	}
	defer func() { _ = unix.Close(fd) }()
	return w.follow(fd)
}

// make creates the file that is missing: what the path is for, or a directory
// on the way.
func (w *walker) make(name string, create int) error {
	if create == MakeDir || strings.Join(w.rest, "") != "" {
		return os.NewSyscallError("mkdirat", unix.Mkdirat(w.top(), name, 0o755))
	}
	fd, err := unix.Openat(w.top(), name, unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_WRONLY, 0o644)
	if err != nil {
		return os.NewSyscallError("openat", err)
	}
	return os.NewSyscallError("close", unix.Close(fd))
}

// follow continues where a link leads.
func (w *walker) follow(link int) error {
	var buf [unix.PathMax]byte
	n, err := unix.Readlinkat(link, "", buf[:])
	if err != nil {
		return os.NewSyscallError("readlinkat", err)
	}
	if w.links++; w.links > maxLinks {
		return unix.ELOOP
	}
	target := string(buf[:n])
	if strings.HasPrefix(target, "/") {
		w.backTo(1)
	}
	w.rest = append(strings.Split(target, "/"), w.rest...)
	return nil
}

// Descriptor is a path that leads to what an open descriptor names.
func Descriptor(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }
