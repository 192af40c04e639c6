package job

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// place is a job's directory while the job runs: the directory that it was when the job
// began, under the name that it had. Everything that the job writes, it writes to that
// name. When it is another directory's, or nobody's, nothing may be written any more.
type place struct {
	path string // absolute
	dir  *os.File
}

func openPlace(path string) (*place, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &place{path, dir}, nil
}

func (p *place) close() error {
	if p == nil {
		return nil
	}
	if err := p.dir.Close(); err != nil {
		return fmt.Errorf("closing the job directory: %w", err)
	}
	return nil
}

// MovedError is the error of a job whose directory was removed, or moved away, while the
// job ran.
type MovedError struct {
	Dir string
	// Now is where the directory is; empty if that is not known, or it is not there.
	Now     string
	Removed bool
}

func (e *MovedError) Error() string {
	switch {
	case e.Removed:
		return fmt.Sprintf("job directory %q was removed while the job ran, and what its trials came to with it", e.Dir)
	case e.Now != "":
		return fmt.Sprintf("job directory %q was moved to %q while the job ran; what was done is there, and running trials were given up", e.Dir, e.Now)
	}
	return fmt.Sprintf("job directory %q was moved or removed while the job ran; running trials were given up", e.Dir)
}

// check returns a [*MovedError] if the directory is not at its name any more.
func (p *place) check() error {
	own, err := p.dir.Stat()
	if err != nil {
		return nil //nolint:nilerr // what is wrong with it, writing there will tell
	}
	named, err := os.Stat(p.path)
	gone := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	if !gone && (err != nil || os.SameFile(own, named)) {
		return nil //nolint:nilerr // the same
	}
	e := &MovedError{Dir: p.path}
	e.Now, e.Removed = p.now(own)
	return e
}

// now is where the directory is, on systems that tell by an open file.
func (p *place) now(own fs.FileInfo) (path string, removed bool) {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", p.dir.Fd()))
	if err != nil {
		return "", false
	}
	if named, err := os.Stat(path); err == nil && os.SameFile(own, named) {
		return path, false
	}
	return "", strings.HasSuffix(path, " (deleted)")
}

// checkInterval is how often it is looked whether the directory is at its name.
const checkInterval = 500 * time.Millisecond

// watch calls fail when the directory is not at its name any more, until ctx ends.
func (p *place) watch(ctx context.Context, fail func(error)) {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := p.check(); err != nil {
				fail(err)
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
