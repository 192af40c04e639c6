package image

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/layerfs"
)

// Files shows what an overlay of an image's layers would. It follows no links:
// a name that leads through one does not exist. Names are those of package fs.
type Files struct{ dirs []string } // highest first

var (
	_ fs.ReadLinkFS = (*Files)(nil)
	_ fs.ReadDirFS  = (*Files)(nil)
	_ fs.StatFS     = (*Files)(nil)
)

// Files are the image's.
func (m Image) Files() *Files { return &Files{dirs: m.Dirs()} }

// shown is what one name stands for: the directories of the layers that are
// merged under it, highest first, or one file of another kind.
type shown struct {
	info  fs.FileInfo
	paths []string
}

func (f *Files) look(name string) (shown, error) {
	at := shown{paths: f.dirs}
	if name == "." {
		if len(f.dirs) == 0 {
			return at, fs.ErrNotExist
		}
		info, err := os.Lstat(f.dirs[0])
		at.info = info
		return at, err
	}
	for base := range strings.SplitSeq(name, "/") {
		if base == "" || base == "." || base == ".." {
			return at, fs.ErrInvalid
		}
		var err error
		if at, err = at.child(base); err != nil {
			return at, err
		}
	}
	return at, nil
}

// child looks for a name in a merged directory.
func (s shown) child(base string) (shown, error) {
	var out shown
	if s.info != nil && !s.info.IsDir() {
		return out, fs.ErrNotExist
	}
	for _, dir := range s.paths {
		path := filepath.Join(dir, base)
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		if err != nil {
			return out, err
		}
		if layerfs.IsWhiteout(info) || (out.info != nil && !info.IsDir()) {
			break
		}
		if out.info == nil {
			out.info = info
		}
		out.paths = append(out.paths, path)
		if !info.IsDir() || layerfs.IsOpaque(path) {
			break
		}
	}
	if out.info == nil {
		return out, fs.ErrNotExist
	}
	return out, nil
}

func (f *Files) find(op, name string) (shown, error) {
	s, err := f.look(name)
	if err != nil {
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			err = pe.Err
		}
		return s, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return s, nil
}

// Lstat describes a file.
func (f *Files) Lstat(name string) (fs.FileInfo, error) {
	s, err := f.find("lstat", name)
	return s.info, err
}

// Stat describes a file that is no link.
func (f *Files) Stat(name string) (fs.FileInfo, error) {
	info, err := f.Lstat(name)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		err = &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	return info, err
}

// ReadLink returns what a symbolic link says.
func (f *Files) ReadLink(name string) (string, error) {
	s, err := f.find("readlink", name)
	if err != nil {
		return "", err
	}
	return os.Readlink(s.paths[0])
}

// Open opens a regular file. Directories are read with ReadDir, and nothing
// else is opened.
func (f *Files) Open(name string) (fs.File, error) {
	s, err := f.find("open", name)
	if err != nil {
		return nil, err
	}
	if !s.info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return os.Open(s.paths[0])
}

// ReadDir lists a directory in the order of names.
func (f *Files) ReadDir(name string) ([]fs.DirEntry, error) {
	s, err := f.find("readdir", name)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var list []fs.DirEntry
	for _, dir := range s.paths {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if seen[e.Name()] {
				continue
			}
			seen[e.Name()] = true
			info, err := e.Info()
			if err != nil {
				return nil, err
			}
			if !layerfs.IsWhiteout(info) {
				list = append(list, e)
			}
		}
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}
