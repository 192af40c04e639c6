package layerfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Inherited lists the directories that top has only implicitly and that look
// different in the lower layers, with all their parents, in order. Layers are given
// by their directories, lowest first; implicit is Found.Implicit of top.
func Inherited(lower []string, top string, implicit []string) ([]Directory, error) {
	want := map[string]Directory{}
	for _, name := range implicit {
		e, ok, err := visible(lower, name)
		if err != nil {
			return nil, err
		}
		if ok && (e.Mode != 0o755 || e.UID != os.Geteuid() || e.GID != os.Getegid()) {
			want[name] = e
		}
	}
	for _, name := range implicit {
		if _, ok := want[name]; !ok {
			continue
		}
		for up := path.Dir(name); up != "."; up = path.Dir(up) {
			if err := addParent(want, lower, top, implicit, up); err != nil {
				return nil, err
			}
		}
	}
	dirs := make([]Directory, 0, len(want))
	for _, e := range want {
		dirs = append(dirs, e)
	}
	slices.SortFunc(dirs, func(a, b Directory) int { return strings.Compare(a.Path, b.Path) })
	return dirs, nil
}

// addParent adds a directory as it is seen with top on the lower layers.
func addParent(want map[string]Directory, lower []string, top string, implicit []string, name string) error {
	if _, ok := want[name]; ok {
		return nil
	}
	from := append(slices.Clone(lower), top)
	if _, isImplicit := slices.BinarySearch(implicit, name); isImplicit {
		if _, ok, err := visible(lower, name); err != nil || ok {
			from = lower
		}
	}
	e, ok, err := visible(from, name)
	if err == nil && ok {
		want[name] = e
	}
	return err
}

// visible finds the directory of a name that an overlay of the layers shows.
func visible(layers []string, name string) (Directory, bool, error) {
	for _, l := range slices.Backward(layers) {
		e, state, err := lookUp(l, name)
		if err != nil || state != seeThrough {
			return e, state == found, err
		}
	}
	return Directory{}, false, nil
}

type lookState int

const (
	seeThrough lookState = iota // the layer says nothing of the name
	found
	hidden // lower layers' directories of the name are hidden
)

// lookUp looks for a directory in one layer, component by component, because
// what lies on the way may hide it.
func lookUp(dir, name string) (Directory, lookState, error) {
	opaque := false
	for end := 0; end < len(name); {
		next := strings.IndexByte(name[end+1:], '/')
		if next < 0 {
			end = len(name)
		} else {
			end += 1 + next
		}
		// No component before this one is a link: each was found to be a directory.
		at := filepath.Join(dir, filepath.FromSlash(name[:end]))
		info, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			if opaque {
				return Directory{}, hidden, nil
			}
			return Directory{}, seeThrough, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			return Directory{}, hidden, nil // a directory closed even to its owner
		}
		if err != nil {
			return Directory{}, hidden, fmt.Errorf("looking at a layer: %w", err)
		}
		if !info.IsDir() {
			return Directory{}, hidden, nil
		}
		opaque = opaque || IsOpaque(at)
		if end == len(name) {
			st := info.Sys().(*syscall.Stat_t)
			return Directory{Path: name, Mode: st.Mode & 0o7777, UID: int(st.Uid), GID: int(st.Gid), Mtime: info.ModTime().UnixNano()}, found, nil
		}
	}
	return Directory{}, hidden, nil
}

// IsOpaque reports whether a directory hides what lower layers have in it.
func IsOpaque(dir string) bool {
	for _, f := range []Format{Trusted, User} {
		var value [2]byte
		if n, err := unix.Lgetxattr(dir, f.xattrOpaque(), value[:]); err == nil && n == 1 && value[0] == 'y' {
			return true
		}
	}
	return false
}

// MakeDirs makes directories, parents first, below diff.
func MakeDirs(diff string, dirs []Directory) error {
	for _, d := range dirs {
		if err := os.MkdirAll(filepath.Join(diff, filepath.FromSlash(d.Path)), 0o700); err != nil {
			return err
		}
	}
	for _, d := range slices.Backward(dirs) {
		at := filepath.Join(diff, filepath.FromSlash(d.Path))
		if err := os.Lchown(at, d.UID, d.GID); err != nil {
			return err
		}
		mtime := time.Unix(0, d.Mtime)
		if err := os.Chtimes(at, mtime, mtime); err != nil {
			return err
		}
		if err := unix.Chmod(at, d.Mode); err != nil {
			return &os.PathError{Op: "chmod", Path: at, Err: err}
		}
	}
	return os.Chmod(diff, 0o755)
}
