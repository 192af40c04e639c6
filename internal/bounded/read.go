package bounded

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrNotRegular marks what stands where a file is expected and is none: a directory, a
// pipe, a socket, a device.
var ErrNotRegular = errors.New("expected a regular file")

// ErrTooLarge marks a file that is longer than it may be.
var ErrTooLarge = errors.New("too large")

// Read reads all of r, which must not be longer than limit bytes.
func Read(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = tooLarge(limit)
	}
	return data, err
}

// ReadFile reads a file of at most limit bytes that the user named. It may be a
// pipe.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > limit {
		return nil, fmt.Errorf("reading %q: %w", path, tooLarge(limit))
	}
	data, err := Read(f, limit)
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", path, err)
	}
	return data, nil
}

// ReadIn reads a file as [OpenIn] opens it. One of more than limit bytes is an
// [ErrTooLarge].
func ReadIn(dir, name string, limit int64) ([]byte, error) {
	root, err := OpenDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return ReadAt(root, name, limit)
}

// readAll is Read of a regular file: a hole of a terabyte is refused before anything
// is read.
func readAll(f *os.File, limit int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, tooLarge(limit)
	}
	data := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	if _, err := data.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, err
	}
	if int64(data.Len()) > limit { // it grew meanwhile
		return nil, tooLarge(limit)
	}
	return data.Bytes(), nil
}

func tooLarge(limit int64) error { return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit) }

// OpenIn opens a regular file below a directory that others may write to, for
// reading: no link leads out of the directory, and what is no file is an
// [ErrNotRegular]; a pipe does not block, and a device is not opened. Errors name
// the file by its whole path. Whoever reads it bounds what is read.
func OpenIn(dir, name string) (*os.File, error) {
	root, err := OpenDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return OpenAt(root, name)
}

// OpenDir opens a directory that others may have put something else in the place of:
// [os.OpenRoot] would wait at a pipe.
func OpenDir(dir string) (*os.Root, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR}
	}
	return os.OpenRoot(dir)
}

// Planted reports whether an error says that what stands in a file's place was put there
// by somebody who is not its writer: something that is no file, that leads elsewhere, or
// that is larger than such a file can be.
func Planted(err error) bool {
	return errors.Is(err, ErrNotRegular) || errors.Is(err, ErrLeadsOut) || errors.Is(err, ErrTooLarge)
}

// ReadAt is [ReadIn] for a directory that is open.
func ReadAt(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := OpenAt(root, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := readAll(f, limit)
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", f.Name(), err)
	}
	return data, nil
}

// OpenAt is [OpenIn] for a directory that is open.
func OpenAt(root *os.Root, name string) (*os.File, error) {
	info, err := root.Stat(name)
	if err != nil && within(root, name, err).Err == ErrLeadsOut { //nolint:errorlint // it is that very one
		// Perhaps it leads back in: a root follows no absolute link.
		if name, err = insideName(root, name); err == nil {
			info, err = root.Stat(name)
		}
	}
	if err != nil {
		return nil, within(root, name, err)
	}
	if err := regular(root, name, info); err != nil {
		return nil, err
	}
	// What was a file a moment ago may have been replaced.
	f, err := root.OpenFile(name, os.O_RDONLY|dontWait, 0)
	if err != nil {
		return nil, within(root, name, err)
	}
	if info, err = f.Stat(); err == nil {
		err = regular(root, name, info)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// ErrLeadsOut marks a link that leads out of the directory in which a file is expected.
var ErrLeadsOut = errors.New("a link that leads out of its directory is not followed")

// within gives an error of a directory that is open the whole path.
func within(root *os.Root, name string, err error) *fs.PathError {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		err = pe.Err
	}
	if err.Error() == escapes {
		err = ErrLeadsOut
	}
	return &fs.PathError{Op: "open", Path: filepath.Join(root.Name(), name), Err: err}
}

// insideName is the name of a file without links, for one that leads out of a directory
// and back in. What leads nowhere is an fs.ErrNotExist.
func insideName(root *os.Root, name string) (string, error) {
	real, err := filepath.EvalSymlinks(filepath.Join(root.Name(), name))
	if err != nil {
		return name, err
	}
	base, err := filepath.EvalSymlinks(root.Name())
	if err != nil {
		return name, err
	}
	rel, err := filepath.Rel(base, real)
	if err != nil || !filepath.IsLocal(rel) {
		return name, ErrLeadsOut
	}
	return rel, nil
}

// escapes is how package os words that a name leads out of a root; it exports no such
// error.
const escapes = "path escapes from parent"

func regular(root *os.Root, name string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return &fs.PathError{
		Op: "open", Path: filepath.Join(root.Name(), name),
		Err: fmt.Errorf("%w, this is %s", ErrNotRegular, Kind(info.Mode())),
	}
}

// Kind names what is no regular file: "a named pipe".
func Kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	default:
		return "something else"
	}
}
