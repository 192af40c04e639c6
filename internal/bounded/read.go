package bounded

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
		err = fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)
	}
	return data, err
}

// maxTyped bounds what is read of a device, in bytes: it is a terminal, at which somebody
// types, or may have no end.
const maxTyped = 1 << 20

// ReadFile reads a file of at most limit bytes that the user named. It may be a
// pipe or a terminal. Nothing of a file that is too large is read.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := Fits(f, limit)
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeDevice != 0 {
		limit = min(limit, maxTyped)
	}
	data, err := Read(f, limit)
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", path, err)
	}
	return data, nil
}

// ReadFileContext is [ReadFile] until ctx ends. A read of a pipe cannot be called off:
// its goroutine then ends with the pipe, or with the process.
func ReadFileContext(ctx context.Context, path string, limit int64) ([]byte, error) {
	type read struct {
		data []byte
		err  error
	}
	done := make(chan read, 1)
	go func() {
		data, err := ReadFile(path, limit)
		done <- read{data, err}
	}()
	select {
	case r := <-done:
		return r.data, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("reading %q: %w", path, context.Cause(ctx))
	}
}

// ReadIn reads a file as [OpenIn] opens it. One of more than limit bytes is an
// [ErrTooLarge].
func ReadIn(dir, name string, limit int64) ([]byte, error) {
	f, err := OpenIn(dir, name)
	return readAll(f, err, limit)
}

// ReadAt is [ReadIn] for a directory that is open.
func ReadAt(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := OpenAt(root, name)
	return readAll(f, err, limit)
}

// ReadRegular reads a file as [OpenRegular] opens it.
func ReadRegular(path string, limit int64) ([]byte, error) {
	f, err := OpenRegular(path)
	return readAll(f, err, limit)
}

// readAll reads a file that was opened, unless that failed. Nothing of a file that is
// too large is read.
func readAll(f *os.File, err error, limit int64) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if _, err := Fits(f, limit); err != nil {
		return nil, err
	}
	data, err := Read(f, limit)
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", f.Name(), err)
	}
	return data, nil
}

// MaxContent is the size of the largest file that is hashed, packed or copied, in
// bytes. Nothing that people make tasks of is that large, and a sparse file of terabytes
// would keep its reader busy for hours.
const MaxContent = 64 << 30

// SHA256 is the hash of a file of at most [MaxContent] bytes, in hex digits.
func SHA256(f *os.File) (string, error) {
	if _, err := Fits(f, MaxContent); err != nil {
		return "", err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(f, MaxContent)); err != nil {
		return "", fmt.Errorf("reading %q: %w", f.Name(), err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Fits returns what f is; where it has more than limit bytes, the error is an
// [ErrTooLarge].
func Fits(f *os.File, limit int64) (fs.FileInfo, error) {
	info, err := f.Stat()
	if err == nil && info.Size() > limit {
		err = fmt.Errorf("reading %q: %w: more than %d bytes", f.Name(), ErrTooLarge, limit)
	}
	return info, err
}

// OpenRegular opens a regular file that the user named, or that stands in a directory
// whose links he lets lead anywhere, for reading: links are followed, and what is no
// file is an [ErrNotRegular]; a pipe does not block, and a device is not opened.
// Whoever reads it bounds what is read.
func OpenRegular(path string) (*os.File, error) {
	return openRegular(path, func() (fs.FileInfo, error) { return os.Stat(path) },
		func() (*os.File, error) { return os.OpenFile(path, os.O_RDONLY|dontWait, 0) })
}

// openRegular opens what is a regular file before and after that: it may have been replaced.
func openRegular(path string, stat func() (fs.FileInfo, error), open func() (*os.File, error)) (*os.File, error) {
	info, err := stat()
	if err != nil {
		return nil, err
	}
	if err := regular(path, info); err != nil {
		return nil, err
	}
	f, err := open()
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = regular(path, info)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

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

// OpenAt is [OpenIn] for a directory that is open.
func OpenAt(root *os.Root, name string) (*os.File, error) {
	return openRegular(filepath.Join(root.Name(), name),
		func() (fs.FileInfo, error) {
			info, err := root.Stat(name)
			if errors.Is(within(root, name, err), ErrLeadsOut) {
				// Perhaps it leads back in: a root follows no absolute link.
				if name, err = insideName(root, name); err == nil {
					info, err = root.Stat(name)
				}
			}
			return info, within(root, name, err)
		},
		func() (*os.File, error) {
			f, err := root.OpenFile(name, os.O_RDONLY|dontWait, 0)
			return f, within(root, name, err)
		})
}

// ErrLeadsOut marks a link that leads out of the directory in which a file is expected.
var ErrLeadsOut = errors.New("a link that leads out of its directory is not followed")

// within gives an error of a directory that is open the whole path.
func within(root *os.Root, name string, err error) error {
	if err == nil {
		return nil
	}
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

func regular(path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w, this is %s", ErrNotRegular, Kind(info.Mode()))}
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
