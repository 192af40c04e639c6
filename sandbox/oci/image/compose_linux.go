package image

import (
	"context"
	"encoding/json"
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

// syncTree makes the file system that holds dir write out what it has.
func syncTree(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}

// freeBytes is what an ordinary user may still write to the file system of dir.
func freeBytes(dir string) (int64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * st.Bsize, true
}

// compose turns the layers of an image, lowest first, into the keys to mount.
//
// Two things that a layer says cannot be said by its own directory, because
// that is shared by images in which it lies on different layers: an opaque root
// drops everything below it, and a directory that the layer has no entry for
// looks like the lower layers' directory of that name, for which a synthetic
// layer is put on top.
func (s *Store) compose(ctx context.Context, layers []Layer) ([]string, error) {
	var stack []Layer
	for _, layer := range layers {
		info := s.infoOf(keyOf(layer))
		if info.OpaqueRoot {
			stack = nil
		}
		lower := stack
		stack = append(stack, layer)
		dirs, err := inherited(lower, layer, info.Implicit)
		if err != nil {
			return nil, err
		}
		if len(dirs) == 0 {
			continue
		}
		synthetic, err := s.syntheticLayer(ctx, dirs)
		if err != nil {
			return nil, err
		}
		stack = append(stack, synthetic)
	}
	if len(stack) > maxLayers {
		return nil, fmt.Errorf("composing the image: %w: %d layers to mount, at most %d", ErrLimit, len(stack), maxLayers)
	}
	keys := make([]string, len(stack))
	for i, l := range stack {
		keys[i] = keyOf(l)
	}
	return keys, nil
}

// dirEntry is a directory of a synthetic layer.
type dirEntry struct {
	Path  string `json:"path"`
	Mode  uint32 `json:"mode"`
	UID   int    `json:"uid"`
	GID   int    `json:"gid"`
	Mtime int64  `json:"mtime"` // nanoseconds
}

// inherited lists the directories that top has only implicitly and that look
// different in the lower layers, with all their parents, in order.
func inherited(lower []Layer, top Layer, implicit []string) ([]dirEntry, error) {
	want := map[string]dirEntry{}
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
	dirs := make([]dirEntry, 0, len(want))
	for _, e := range want {
		dirs = append(dirs, e)
	}
	slices.SortFunc(dirs, func(a, b dirEntry) int { return strings.Compare(a.Path, b.Path) })
	return dirs, nil
}

// addParent adds a directory as it is seen with top on the lower layers.
func addParent(want map[string]dirEntry, lower []Layer, top Layer, implicit []string, name string) error {
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
func visible(layers []Layer, name string) (dirEntry, bool, error) {
	for _, l := range slices.Backward(layers) {
		e, state, err := lookUp(l.Dir, name)
		if err != nil || state != seeThrough {
			return e, state == found, err
		}
	}
	return dirEntry{}, false, nil
}

type lookState int

const (
	seeThrough lookState = iota // the layer says nothing of the name
	found
	hidden // lower layers' directories of the name are hidden
)

// lookUp looks for a directory in one layer, component by component, because
// what lies on the way may hide it.
func lookUp(dir, name string) (dirEntry, lookState, error) {
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
				return dirEntry{}, hidden, nil
			}
			return dirEntry{}, seeThrough, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			return dirEntry{}, hidden, nil // a directory closed even to its owner
		}
		if err != nil {
			return dirEntry{}, hidden, fmt.Errorf("looking at a layer: %w", err)
		}
		if !info.IsDir() {
			return dirEntry{}, hidden, nil
		}
		opaque = opaque || isOpaque(at)
		if end == len(name) {
			st := info.Sys().(*syscall.Stat_t)
			return dirEntry{Path: name, Mode: st.Mode & 0o7777, UID: int(st.Uid), GID: int(st.Gid), Mtime: info.ModTime().UnixNano()}, found, nil
		}
	}
	return dirEntry{}, hidden, nil
}

func isOpaque(dir string) bool {
	for _, f := range []format{formatTrusted, formatUser} {
		var value [2]byte
		if n, err := unix.Lgetxattr(dir, f.xattrOpaque(), value[:]); err == nil && n == 1 && value[0] == 'y' {
			return true
		}
	}
	return false
}

// syntheticLayer returns a layer of nothing but directories.
func (s *Store) syntheticLayer(ctx context.Context, dirs []dirEntry) (Layer, error) {
	list, err := json.Marshal(dirs)
	if err != nil {
		return Layer{}, fmt.Errorf("making a synthetic layer: %w", err)
	}
	digest := digestOf(list)
	return s.ensureLayer(ctx, "dirs-"+fileKey(digest), func(_ context.Context, diff string) (layerInfo, error) {
		if err := makeDirs(diff, dirs); err != nil {
			return layerInfo{}, fmt.Errorf("making a synthetic layer: %w", err)
		}
		return layerInfo{DiffID: digest, Synthetic: true, Notes: Notes{Entries: len(dirs)}}, nil
	})
}

func makeDirs(diff string, dirs []dirEntry) error {
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
