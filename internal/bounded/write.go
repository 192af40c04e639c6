package bounded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrNotOwn marks a file that is not written to in place, since that could change one
// elsewhere.
var ErrNotOwn = errors.New("not written to")

// AppendIn opens a file of a directory that others may have written to, to read it and
// to write behind its end; where there is none it is made. What stands there must be a
// regular file without a second name: writing to it changes nothing else.
func AppendIn(dir, name string, mode fs.FileMode) (*os.File, error) {
	root, err := OpenDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	if err := checkOwn(root, name); err != nil {
		return nil, err
	}
	return root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND|dontWait, mode)
}

// CheckOwn reports whether a file of a directory may be written to in place, as
// [AppendIn] asks for: it is not there, or a regular file without a second name.
func CheckOwn(dir, name string) error {
	root, err := OpenDir(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return checkOwn(root, name)
}

func checkOwn(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return within(root, name, err)
	}
	why := ""
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		why = "it is a link"
	case !info.Mode().IsRegular():
		return regular(filepath.Join(root.Name(), name), info)
	case hasSecondName(info):
		why = "it has a second name (a hard link)"
	default:
		return nil
	}
	return within(root, name, fmt.Errorf("%w: %s, remove it", ErrNotOwn, why))
}

// Truncate makes a file anew in a directory that others may have written to: whatever
// stands at its name is removed, and no link is followed out of the directory.
func Truncate(dir, name string) (*os.File, error) { return create(dir, name) }
