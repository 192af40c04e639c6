package outcome

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/proctor-run/proctor/internal/bounded"
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

// readFile never waits, and follows no link out of the directory: it may be a
// stranger's.
func readFile(path string) ([]byte, error) {
	data, err := bounded.ReadIn(filepath.Dir(path), filepath.Base(path), maxResultSize)
	if err != nil {
		return nil, fmt.Errorf("reading job result: %w", err)
	}
	return data, nil
}
