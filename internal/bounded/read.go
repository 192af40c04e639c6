package bounded

import (
	"fmt"
	"io"
	"os"
)

// Read reads all of r, which must not be longer than limit bytes.
func Read(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("more than %d bytes", limit)
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
	data, err := Read(f, limit)
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", path, err)
	}
	return data, nil
}

// ReadIn reads a regular file of at most limit bytes below a directory that
// others may write to: no link leads out of the directory, and a pipe that is
// put in the file's place does not block.
func ReadIn(dir, name string, limit int64) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	f, err := root.OpenFile(name, os.O_RDONLY|dontWait, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is no regular file", name)
	}
	data, err := Read(f, limit)
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", name, err)
	}
	return data, nil
}
