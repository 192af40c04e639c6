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
	"github.com/proctor-run/proctor/procid"
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

// TestReadHolder: who reads only is told of a process that lives, and of one that cannot
// be asked.
func TestReadHolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if h := jobdir.ReadHolder(dir, "h"); h != nil {
		t.Errorf("without a guard: %v", h)
	}
	self, err := procid.Self()
	if err != nil {
		t.Fatal(err)
	}
	g, err := jobdir.Acquire(dir, jobdir.Holder{Owner: self, Host: "h"})
	if err != nil {
		t.Fatal(err)
	}
	if h := jobdir.ReadHolder(dir, "h"); h == nil || h.Owner != self {
		t.Errorf("of this process: %v", h)
	}
	if err := g.Release(); err != nil {
		t.Fatal(err)
	}
	if h := jobdir.ReadHolder(dir, "h"); h != nil {
		t.Errorf("released: %v", h)
	}
	self.StartTicks++ // another process of this number
	if g, err = jobdir.Acquire(dir, jobdir.Holder{Owner: self, Host: "h"}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Release() }()
	if h := jobdir.ReadHolder(dir, "h"); h != nil {
		t.Errorf("of a dead process: %v", h)
	}
	if h := jobdir.ReadHolder(dir, "another"); h == nil {
		t.Error("a process of another machine cannot be asked, and counts as dead")
	}
}
