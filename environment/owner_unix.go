//go:build unix

package environment

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// own makes a file proctor's. Changing the owner of a file, also to the same one, takes
// away what it may do beyond its mode: Linux drops its capabilities and set-ID bits.
// What belongs to another may stay his where proctor is not root, if it is harmless.
func own(root *os.Root, name string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	uid, gid := os.Geteuid(), os.Getegid()
	mine := int(st.Uid) == uid
	mode := info.Mode()
	runs := mode.IsRegular() && mode&(setID|0o111) != 0
	if mine && !runs {
		return nil
	}
	if mine {
		gid = -1 // a user may keep a group, and not choose any other
	}
	err := root.Lchown(name, uid, gid)
	if errors.Is(err, fs.ErrPermission) && !mine && harmless(root, name, mode) {
		return nil
	}
	return err
}

// harmless tells a file of somebody else that gives nobody a right.
func harmless(root *os.Root, name string, mode fs.FileMode) bool {
	switch {
	case mode.Type() == fs.ModeSymlink:
		return true
	case mode&(setID|others) != 0:
		return false
	case mode.IsRegular() && mode&0o111 != 0:
		return !capable(root, name)
	}
	return true
}
