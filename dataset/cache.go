package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/proctor-run/proctor/harbor"
)

// taskCache is a directory that holds tasks which come from elsewhere. Several
// programs may use it at once.
type taskCache struct{ dir string }

// Working directories in a cache, and how old one is that a killed program must
// have left.
const (
	workPrefix = ".proctor-"
	workAge    = 24 * time.Hour
)

func (c taskCache) path(rel string) string { return filepath.Join(c.dir, filepath.FromSlash(rel)) }

// workDir makes a directory on the cache's file system, from where tasks can be
// moved to their places. It also removes such directories of killed programs.
func (c taskCache) workDir(now time.Time) (dir string, release func(), err error) {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return "", nil, fmt.Errorf("making the task cache: %w", err)
	}
	c.removeStale(now)
	dir, err = os.MkdirTemp(c.dir, workPrefix)
	if err != nil {
		return "", nil, fmt.Errorf("making room in the task cache: %w", err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}

func (c taskCache) removeStale(now time.Time) {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return // the next step will say why
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.IsDir() && strings.HasPrefix(e.Name(), workPrefix) && now.Sub(info.ModTime()) > workAge {
			_ = os.RemoveAll(filepath.Join(c.dir, e.Name()))
		}
	}
}

// place has a directory filled and moves it to its place, which readers never
// see half filled. What stood there before is replaced when it is different.
func (c taskCache) place(to, temp string, fill func(dir string) error) error {
	dir, err := os.MkdirTemp(temp, "task-")
	if err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(dir, 0o755), fill(dir)); err != nil {
		return err
	}
	if same(dir, to) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("keeping a task in the cache: %w", err)
	}
	// Another program may put its own copy there between two steps; then the
	// next round replaces that.
	for range placeAttempts {
		if err = os.Rename(dir, to); err == nil {
			return nil
		}
		old := filepath.Join(temp, "old-"+filepath.Base(dir))
		if moveErr := os.Rename(to, old); moveErr != nil && !errors.Is(moveErr, fs.ErrNotExist) {
			return fmt.Errorf("replacing a task in the cache: %w", errors.Join(err, moveErr))
		}
		_ = os.RemoveAll(old) // what stays goes with temp
	}
	return fmt.Errorf("keeping a task in the cache: %w", err)
}

// placeAttempts is how often a place is tried for that others want too.
const placeAttempts = 100

// same reports whether two directories hold the same task.
func same(a, b string) bool {
	if !isFilled(b) {
		return false
	}
	x, errA := harbor.Checksum(a)
	y, errB := harbor.Checksum(b)
	return errA == nil && errB == nil && x == y
}

func isFilled(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0
}
