package image

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/layerfs"
)

// session is a process's own directory below tmp. A lock file beside it, held
// for as long as the process lives, tells it from a leftover.
type session struct {
	dir  string
	lock *flock.Flock
}

const lockSuffix = ".lock"

func newSession(tmp string) (*session, error) {
	for {
		f, err := os.CreateTemp(tmp, "*"+lockSuffix)
		if err != nil {
			return nil, fmt.Errorf("creating a work directory: %w", err)
		}
		if err := f.Close(); err != nil {
			return nil, fmt.Errorf("creating a work directory: %w", err)
		}
		s, ok, err := claimSession(f.Name())
		if err != nil {
			return nil, fmt.Errorf("creating a work directory: %w", err)
		}
		if ok {
			return s, nil
		}
	}
}

// claimSession locks a new lock file. Between its creation and the lock another
// process may have taken it for a leftover; then ok is false.
func claimSession(path string) (*session, bool, error) {
	lock := flock.New(path, flock.SetFlag(os.O_RDWR))
	ok, err := tryLock(lock)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && !ok) {
		return nil, false, release(lock)
	}
	if err != nil {
		return nil, false, errors.Join(err, release(lock))
	}
	if !stillThere(lock, path) {
		return nil, false, release(lock)
	}
	dir := strings.TrimSuffix(path, lockSuffix)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, false, errors.Join(err, os.Remove(path), release(lock))
	}
	spread(dir)
	return &session{dir: dir, lock: lock}, true, nil
}

// tryLock takes a lock that no other process holds; ok is false where one does.
func tryLock(lock *flock.Flock) (ok bool, err error) {
	if ok, err = lock.TryLock(); err != nil {
		err = fmt.Errorf("locking %q: %w", lock.Path(), err)
	}
	return ok, err
}

// release gives a lock up, also one that was not obtained.
func release(lock *flock.Flock) error {
	if err := lock.Close(); err != nil {
		return fmt.Errorf("releasing the lock %q: %w", lock.Path(), err)
	}
	return nil
}

// stillThere reports whether the locked file is the one that path names.
func stillThere(lock *flock.Flock, path string) bool {
	held, err := lock.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(held, named)
}

func (s *session) file(pattern string) (*os.File, error) { return os.CreateTemp(s.dir, pattern) }

func (s *session) mkdir(pattern string) (string, error) { return os.MkdirTemp(s.dir, pattern) }

func (s *session) end() error { return dissolve(s.dir, s.lock) }

// dissolve removes a session. Its lock is given up before the file goes, as
// some systems want it; whoever takes the lock then only removes it too.
func dissolve(dir string, lock *flock.Flock) error {
	err := errors.Join(layerfs.RemoveTree(dir), release(lock))
	if gone := os.Remove(dir + lockSuffix); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

// removeLeftovers removes the sessions whose process is gone.
func removeLeftovers(tmp string, log *slog.Logger) error {
	entries, err := os.ReadDir(tmp)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(tmp, e.Name())
		if !strings.HasSuffix(e.Name(), lockSuffix) {
			path += lockSuffix
			if _, err := os.Lstat(path); err == nil {
				continue // its lock file is an entry of its own
			}
			// Lock files go last, so this is no living session's.
			errs = append(errs, layerfs.RemoveTree(strings.TrimSuffix(path, lockSuffix)))
			continue
		}
		errs = append(errs, removeLeftover(path, log))
	}
	return errors.Join(errs...)
}

func removeLeftover(path string, log *slog.Logger) error {
	lock := flock.New(path, flock.SetFlag(os.O_RDWR))
	ok, err := tryLock(lock)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && !ok) {
		return release(lock)
	}
	if err != nil {
		return errors.Join(err, release(lock))
	}
	if !stillThere(lock, path) {
		return release(lock)
	}
	dir := strings.TrimSuffix(path, lockSuffix)
	log.Info("removing what a killed process left", "dir", dir)
	return dissolve(dir, lock)
}
