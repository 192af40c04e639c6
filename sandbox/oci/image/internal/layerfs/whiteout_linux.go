package layerfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Names with a meaning in layers (OCI image specification, "Image Layer
// Filesystem Changeset", section "Whiteouts").
const (
	whiteoutPrefix = ".wh."
	// whiteoutMeta begins the names that AUFS keeps for itself.
	whiteoutMeta   = whiteoutPrefix + whiteoutPrefix
	whiteoutOpaque = whiteoutMeta + ".opq"
)

// xattrOpaque is the attribute of directories that hide what is below them.
func (f Format) xattrOpaque() string { return string(f) + ".overlay.opaque" }

func isWhiteoutStat(st *unix.Stat_t) bool {
	return st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0
}

// IsWhiteout reports whether a file hides what lower layers have of its name.
func IsWhiteout(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0
}

// whiteoutEntry hides something of lower layers. It does not touch what this
// layer has under the same name, before or after.
func (u *unpacker) whiteoutEntry(parent, base string) error {
	if base == whiteoutOpaque {
		dir, err := u.tree.walk(parent, true)
		if err != nil {
			return err
		}
		return u.opaque(dir.path)
	}
	if strings.HasPrefix(base, whiteoutMeta) {
		return nil
	}
	hidden := strings.TrimPrefix(base, whiteoutPrefix)
	if hidden == "" || hidden == "." || hidden == ".." {
		return fmt.Errorf("whiteout of %q: %w", hidden, errUnsafe)
	}
	dir, err := u.tree.walk(parent, true)
	if err != nil {
		return err
	}
	return u.whiteout(place{dir: dir, base: hidden})
}

func (u *unpacker) whiteout(at place) error {
	var st unix.Stat_t
	err := unix.Fstatat(at.dir.fd, at.base, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil {
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return u.opaque(at.path())
		}
		return nil // what this layer has there hides the lower ones already
	}
	if !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("lstat target: %w", err)
	}
	err = unix.Mknodat(at.dir.fd, at.base, unix.S_IFCHR, 0)
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("making a whiteout: %w (without root this needs Linux 5.8, and a store on a file system that allows it)", err)
	}
	if err != nil {
		return fmt.Errorf("making a whiteout: %w", err)
	}
	return u.remember(u.whiteouts, at.path())
}

// opaque makes a directory hide what lower layers have in it.
func (u *unpacker) opaque(name string) error {
	if name == "" {
		u.info.OpaqueRoot = true
		return nil
	}
	d, err := u.tree.open(name)
	if err != nil {
		return err
	}
	err = unix.Fsetxattr(d.fd, u.format.xattrOpaque(), []byte("y"), 0)
	if errors.Is(err, unix.ENOTSUP) {
		return fmt.Errorf("making a directory opaque: %w (put the image store on a file system with extended attributes, such as ext4, xfs or btrfs)", err)
	}
	if err != nil {
		return fmt.Errorf("making a directory opaque: %w", err)
	}
	return nil
}

// ProbeFormat finds out, in a directory of the file system, which attributes this
// process may set.
func ProbeFormat(dir string) Format {
	probe := filepath.Join(dir, "probe")
	if os.Geteuid() != 0 || os.Mkdir(probe, 0o700) != nil {
		return User
	}
	err := unix.Setxattr(probe, Trusted.xattrOpaque(), []byte("y"), 0)
	_ = os.Remove(probe) // it goes with the session at the latest
	if err != nil {
		return User
	}
	return Trusted
}
