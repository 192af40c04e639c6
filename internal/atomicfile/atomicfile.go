// Package atomicfile writes files that readers never see half written.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Write replaces the file at path by data: a temporary file in the same
// directory is written, synced and renamed over it. On an error the old file
// is as it was.
func Write(path string, data []byte, mode fs.FileMode) error {
	return write(path, whole(data), mode, true)
}

// WriteFrom is Write of what a function writes. When it fails, so does WriteFrom.
func WriteFrom(path string, mode fs.FileMode, content func(io.Writer) error) error {
	return write(path, content, mode, true)
}

func whole(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

// WriteUnsynced is Write without waiting for the disk: readers still see the
// old or the new content, but after a power failure it may be either. For
// files that are rewritten often and can be made again.
func WriteUnsynced(path string, data []byte, mode fs.FileMode) error {
	return write(path, whole(data), mode, false)
}

func write(path string, content func(io.Writer) error, mode fs.FileMode, sync bool) (err error) {
	dir, base := filepath.Split(path)
	f, err := os.CreateTemp(dir, "."+base+".tmp-*")
	if err != nil {
		return fmt.Errorf("writing %q: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing %q: %w", path, errors.Join(err, os.Remove(f.Name())))
		}
	}()
	err = content(f)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil && sync {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// WriteIn replaces the file name in dir, a directory that a sandbox may write
// to at the same time: whatever stands at the name is removed first, and no
// link is followed out of the directory. Readers may find no file for a moment,
// but never a part of one.
func WriteIn(dir, name string, data []byte, mode fs.FileMode) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	temp := fmt.Sprintf(".%s.tmp-%x", name, rand.Uint64())
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, root.RemoveAll(temp))
		}
	}()
	_, err = f.Write(data)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := root.RemoveAll(name); err != nil {
		return err
	}
	return root.Rename(temp, name)
}
