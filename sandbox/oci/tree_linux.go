package oci

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// tree is a small directory tree that is kept in memory until it is written:
// what lies on, or hides parts of, the lower layers of a root file system. Keys
// are absolute paths; the parents of each entry are entries too.
type tree map[string]entry

// entry is one file. Kind is fs.ModeDir, fs.ModeSymlink, fs.ModeCharDevice for
// an overlay's whiteout, or 0 for a regular file.
type entry struct {
	Kind fs.FileMode `json:"kind,omitempty"`
	Mode fs.FileMode `json:"mode,omitempty"` // permissions, setgid, sticky
	UID  int         `json:"uid,omitempty"`
	GID  int         `json:"gid,omitempty"`
	Data []byte      `json:"data,omitempty"` // content, or a link's target
}

// attributes returns the mode and owner of a directory of the layers below.
type attributes func(dir string) (entry, bool)

// put adds an entry and the parents it lacks. Directories of a higher layer
// define the mode and owner of the merged one, so parents take theirs from
// below.
func (t tree) put(name string, e entry, below attributes) {
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		if _, ok := t[dir]; ok {
			break
		}
		parent, ok := below(dir)
		if !ok {
			parent = entry{Mode: 0o755}
		}
		parent.Kind, parent.Data = fs.ModeDir, nil
		t[dir] = parent
		if dir == "/" {
			break
		}
	}
	t[name] = e
}

func (t tree) file(name string, mode fs.FileMode, data []byte, below attributes) {
	t.put(name, entry{Mode: mode, Data: data}, below)
}

func (t tree) whiteout(name string, below attributes) {
	t.put(name, entry{Kind: fs.ModeCharDevice}, below)
}

// has reports whether anything of the tree lies at or below dir.
func (t tree) has(dir string) bool {
	_, ok := t[dir]
	return ok
}

// create writes the tree into dir, which must not exist. Owners are set where
// the process may.
func (t tree) create(dir string) error {
	if !t.has("/") {
		return os.Mkdir(dir, 0o755)
	}
	names := slices.Sorted(maps.Keys(t)) // parents come before what they hold
	for _, name := range names {
		if err := t[name].create(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("creating %q: %w", name, err)
		}
	}
	return nil
}

// fsName is an absolute path in the words of package fs.
func fsName(name string) string {
	if name == "/" {
		return "."
	}
	return name[1:]
}

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
