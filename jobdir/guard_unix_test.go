//go:build unix

package jobdir_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/jobdir"
)

// TestAcquireWritesNothingElsewhere: a stranger's guard that is a link, or a pipe, is not
// written to.
func TestAcquireWritesNothingElsewhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other := filepath.Join(t.TempDir(), "other")
	path := filepath.Join(dir, jobdir.GuardFile)
	if err := os.Symlink(other, path); err != nil {
		t.Fatal(err)
	}
	if g, err := jobdir.Acquire(dir, jobdir.Holder{Host: "h"}); !errors.Is(err, bounded.ErrNotOwn) {
		t.Errorf("got %v, %v", g, err)
	}
	if _, err := os.Lstat(other); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file that the link names was made: %v", err)
	}
	if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	if g, err := jobdir.Acquire(dir, jobdir.Holder{Host: "h"}); !errors.Is(err, bounded.ErrNotRegular) {
		t.Errorf("got %v, %v", g, err)
	}
}
