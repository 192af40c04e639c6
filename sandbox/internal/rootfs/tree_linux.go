package rootfs

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

// Tree is a small directory tree that is kept in memory until it is written:
// what lies on, or hides parts of, the lower layers of a root file system. Keys
// are absolute paths; the parents of each entry are entries too.
type Tree map[string]Entry

// Entry is one file. Kind is fs.ModeDir, fs.ModeSymlink, fs.ModeCharDevice for
// an overlay's whiteout, or 0 for a regular file.
type Entry struct {
	Kind fs.FileMode `json:"kind,omitempty"`
	Mode fs.FileMode `json:"mode,omitempty"` // permissions, setgid, sticky
	UID  int         `json:"uid,omitempty"`
	GID  int         `json:"gid,omitempty"`
	Data []byte      `json:"data,omitempty"` // content, or a link's target
}

// Attributes returns the mode and owner of a directory of the layers below.
type Attributes func(dir string) (Entry, bool)

// Put adds an entry and the parents it lacks. Directories of a higher layer
// define the mode and owner of the merged one, so parents take theirs from
// below.
func (t Tree) Put(name string, e Entry, below Attributes) {
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		if _, ok := t[dir]; ok {
			break
		}
		parent, ok := below(dir)
		if !ok {
			parent = Entry{Mode: 0o755}
		}
		parent.Kind, parent.Data = fs.ModeDir, nil
		t[dir] = parent
		if dir == "/" {
			break
		}
	}
	t[name] = e
}

// File adds a regular file of root.
func (t Tree) File(name string, mode fs.FileMode, data []byte, below Attributes) {
	t.Put(name, Entry{Mode: mode, Data: data}, below)
}

// Whiteout hides what the layers below have of that name.
func (t Tree) Whiteout(name string, below Attributes) {
	t.Put(name, Entry{Kind: fs.ModeCharDevice}, below)
}

// Has reports whether anything of the tree lies at or below dir.
func (t Tree) Has(dir string) bool {
	_, ok := t[dir]
	return ok
}

// Create writes the tree into dir, which must not exist. Owners are set where
// the process may.
func (t Tree) Create(dir string) error {
	if !t.Has("/") {
		return os.Mkdir(dir, 0o755)
	}
	names := slices.Sorted(maps.Keys(t)) // parents come before what they hold
	for _, name := range names {
		if err := t[name].Create(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("creating %q: %w", name, err)
		}
	}
	return nil
}

// Create makes the file. Owners are set where the process may.
func (e Entry) Create(name string) error {
	switch e.Kind {
	case fs.ModeDir:
		if err := os.Mkdir(name, 0o700); err != nil {
			return err
		}
	case fs.ModeSymlink:
		return os.Symlink(string(e.Data), name)
	case fs.ModeCharDevice:
		if err := unix.Mknod(name, unix.S_IFCHR, 0); err != nil {
			return &fs.PathError{Op: "mknod", Path: name, Err: err}
		}
		return nil
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

// Stat describes a file of the host.
func Stat(info fs.FileInfo) Entry {
	e := Entry{Kind: info.Mode().Type(), Mode: info.Mode().Perm() | info.Mode()&(fs.ModeSetgid|fs.ModeSticky)}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		e.UID, e.GID = int(st.Uid), int(st.Gid)
	}
	return e
}
