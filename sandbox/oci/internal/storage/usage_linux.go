package storage

import (
	"context"
	"os"

	"golang.org/x/sys/unix"
)

// usage is what lies in directories.
type usage struct {
	bytes   int64 // on disk, a file at least perFile
	entries int64
}

// Size is how many bytes on disk what lies below directories takes, a file at least 4 KiB.
func Size(ctx context.Context, dirs ...string) (int64, error) {
	w := Watch{Dirs: dirs}
	u := w.measure(ctx)
	return u.bytes, context.Cause(ctx)
}

// measure looks at the directories. What changes meanwhile may be missed.
func (w *Watch) measure(ctx context.Context) (u usage) {
	u.bytes = w.Kept
	for _, dir := range w.Dirs {
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // it is going
		}
		root := os.NewFile(uintptr(fd), dir)
		u.add(ctx, root)
		_ = root.Close() // nothing was written
	}
	return u
}

// add counts what is below a directory.
func (u *usage) add(ctx context.Context, root *os.File) {
	top, err := u.enter(root, "")
	if err != nil {
		return
	}
	w := walk{root: root, dir: root, stack: []*place{top}}
	defer func() { w.to(root) }()
	for ctx.Err() == nil {
		here := w.stack[len(w.stack)-1]
		n := len(here.below)
		if n == 0 && len(w.stack) == 1 {
			return
		}
		if n == 0 {
			w.up()
			continue
		}
		name := here.below[n-1]
		here.below = here.below[:n-1]
		next, err := openDir(w.dir, name)
		if err != nil {
			continue // it was removed
		}
		w.to(next)
		below, err := u.enter(next, name)
		if err != nil {
			return
		}
		w.stack = append(w.stack, below)
	}
}

// walk is the way to the directory that is being looked at. Two are open at a time, however
// deep they lie.
type walk struct {
	root, dir *os.File
	stack     []*place
}

// place is a directory on the way.
type place struct {
	name     string
	dev, ino uint64
	below    []string // directories in it that are still to be looked at
}

func (w *walk) to(next *os.File) {
	if w.dir != w.root {
		_ = w.dir.Close() // nothing was written
	}
	w.dir = next
}

// up goes to the directory above. Whoever moves or removes the one below meanwhile does
// not keep the others from being counted.
func (w *walk) up() {
	w.stack = w.stack[:len(w.stack)-1]
	if next, err := openDir(w.dir, ".."); err == nil {
		if w.stack[len(w.stack)-1].is(next) {
			w.to(next)
			return
		}
		_ = next.Close() // nothing was written
	}
	w.to(w.root)
	for i, p := range w.stack[1:] {
		next, err := openDir(w.dir, p.name)
		if err == nil && p.is(next) {
			w.to(next)
			continue
		}
		if err == nil {
			_ = next.Close() // nothing was written
		}
		w.stack = w.stack[:i+1]
		return
	}
}

func openDir(dir *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("openat", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (p *place) is(dir *os.File) bool {
	var st unix.Stat_t
	err := unix.Fstat(int(dir.Fd()), &st)
	return err == nil && st.Dev == p.dev && st.Ino == p.ino
}

// enter counts what is in a directory of that name.
func (u *usage) enter(dir *os.File, name string) (*place, error) {
	var own unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &own); err != nil {
		return nil, os.NewSyscallError("fstat", err)
	}
	p := &place{name: name, dev: own.Dev, ino: own.Ino}
	for {
		names, err := dir.Readdirnames(1024)
		for _, name := range names {
			if u.count(dir, name, p.dev) {
				p.below = append(p.below, name)
			}
		}
		if err != nil { // the end, or it was removed
			return p, nil
		}
	}
}

// count counts an entry, and reports whether it is a directory to be looked at.
func (u *usage) count(dir *os.File, name string, dev uint64) bool {
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Dev != dev {
		return false // it was removed, or something is mounted there
	}
	u.entries++
	isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	bytes := max(st.Blocks*512, perFile)
	if !isDir && st.Nlink > 1 {
		bytes /= int64(st.Nlink) //nolint:gosec,unconvert // the others are here too; the type differs by architecture
	}
	u.bytes += bytes
	return isDir
}
