// Package atomicfile writes files that readers never see half written.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the file at path by data: a temporary file in the same
// directory is written, synced and renamed over it. On an error the old file
// is as it was.
func Write(path string, data []byte, mode fs.FileMode) error {
	return write(path, data, mode, true)
}

// WriteUnsynced is Write without waiting for the disk: readers still see the
// old or the new content, but after a power failure it may be either. For
// files that are rewritten often and can be made again.
func WriteUnsynced(path string, data []byte, mode fs.FileMode) error {
	return write(path, data, mode, false)
}

func write(path string, data []byte, mode fs.FileMode, sync bool) (err error) {
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
	_, err = f.Write(data)
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
