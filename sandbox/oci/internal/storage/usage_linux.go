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

// measure looks at the directories. What changes meanwhile may be missed.
func (w *Watch) measure(ctx context.Context) (u usage) {
	for _, dir := range w.Dirs {
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // it is going
		}
		u.add(ctx, os.NewFile(uintptr(fd), dir))
	}
	return u
}

// place is a directory that is being looked at.
type place struct {
	dev, ino uint64
	below    []string // directories in it that are still to be looked at
}

// add counts what is below a directory, and closes it. One directory is open at a time,
// however deep they lie.
func (u *usage) add(ctx context.Context, dir *os.File) {
	defer func() { _ = dir.Close() }() // nothing was written
	top, err := u.enter(dir)
	if err != nil {
		return
	}
	for stack := []*place{top}; ctx.Err() == nil; {
		here := stack[len(stack)-1]
		name := ".."
		if n := len(here.below); n > 0 {
			name, here.below = here.below[n-1], here.below[:n-1]
		} else if len(stack) == 1 {
			return
		}
		next, err := openDir(dir, name)
		if err != nil && name == ".." {
			return // it was moved away or removed, and nobody knows to where
		}
		if err != nil {
			continue // it was removed
		}
		_ = dir.Close() // nothing was written
		dir = next
		if name == ".." {
			stack = stack[:len(stack)-1]
			if up := stack[len(stack)-1]; !up.is(dir) {
				return
			}
			continue
		}
		below, err := u.enter(dir)
		if err != nil {
			return
		}
		stack = append(stack, below)
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

// enter counts what is in a directory.
func (u *usage) enter(dir *os.File) (*place, error) {
	var own unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &own); err != nil {
		return nil, os.NewSyscallError("fstat", err)
	}
	p := &place{dev: own.Dev, ino: own.Ino}
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
