package outcome

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// maxResultSize bounds how much of a result file is read: that of a job with a
// million trials is smaller.
const maxResultSize = 1 << 30

// Read explains the outcome of the job whose result file has the given path. No
// file, a dangling link included, is [Missing]; one that cannot be read, and a
// directory, is [Malformed].
func Read(path string) Explanation {
	data, err := readFile(path)
	switch {
	case absent(err):
		return Explanation{Outcome: Missing(), Err: err}
	case err != nil:
		return malformed(err)
	}
	return Explain(data)
}

// absent tells the errors that Python's Path.exists takes for a file that is not
// there.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

// readFile never waits: what is no regular file is not opened.
func readFile(path string) (data []byte, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading job result: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("reading job result: %q is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading job result: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err = io.ReadAll(io.LimitReader(f, maxResultSize+1))
	if err != nil {
		return nil, fmt.Errorf("reading job result: %w", err)
	}
	if len(data) > maxResultSize {
		return nil, fmt.Errorf("reading job result: %q has more than %d bytes", path, maxResultSize)
	}
	return data, nil
}
