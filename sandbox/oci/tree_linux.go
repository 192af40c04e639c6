package oci

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func (e entry) create(name string) error {
	switch e.Kind {
	case fs.ModeDir:
		if err := os.Mkdir(name, 0o700); err != nil {
			return err
		}
	case fs.ModeSymlink:
		return os.Symlink(string(e.Data), name)
	case fs.ModeCharDevice:
		return unix.Mknod(name, unix.S_IFCHR, 0)
	default:
		if err := os.WriteFile(name, e.Data, 0o600); err != nil {
			return err
		}
	}
	if e.UID != 0 || e.GID != 0 {
		err := os.Lchown(name, e.UID, e.GID)
		// Ordinary users cannot give files away, and only mapped users have
		// any in a user namespace.
		if err != nil && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	return os.Chmod(name, e.Mode)
}

// statEntry describes a file of the host.
func statEntry(info fs.FileInfo) entry {
	e := entry{Kind: info.Mode().Type(), Mode: info.Mode().Perm() | info.Mode()&(fs.ModeSetgid|fs.ModeSticky)}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		e.UID, e.GID = int(st.Uid), int(st.Gid)
	}
	return e
}
