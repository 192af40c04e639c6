package job_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox/fake"
)

func holder(pid int) jobdir.Holder {
	return jobdir.Holder{Owner: procid.ID{BootID: "boot", PID: pid, StartTicks: 1}, Host: "host-a", Since: time.Date(2026, 6, 9, 8, 0, 0, 0, time.UTC)}
}

func TestGuard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := jobdir.Acquire(dir, holder(4711))
	if err != nil {
		t.Fatal(err)
	}
	_, err = jobdir.Acquire(dir, holder(4712))
	busy, ok := errors.AsType[*jobdir.InUseError](err)
	if !ok || busy.Holder == nil || *busy.Holder != holder(4711) || !strings.Contains(err.Error(), `pid 4711 on host "host-a"`) {
		t.Errorf("the second gets %v", err)
	}
	if info, err := os.Lstat(filepath.Join(dir, jobdir.GuardFile)); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the guard is no file: %v, %v", info, err)
	}
	for range 2 {
		if err := first.Release(); err != nil {
			t.Error(err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("released, there is %v (%v)", entries, err)
	}
	if (*jobdir.Guard)(nil).Release() != nil {
		t.Error("no guard cannot be released")
	}
}

// TestGuardOfTheDead: a file that a killed process left is ignored,
// whatever it says.
func TestGuardOfTheDead(t *testing.T) {
	t.Parallel()
	self, err := procid.Self()
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range []any{holder(1), jobdir.Holder{Owner: self, Host: "host-a"}, "not a holder", nil} {
		dir := t.TempDir()
		data, err := json.Marshal(left)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, jobdir.GuardFile), data, 0o644); err != nil {
			t.Fatal(err)
		}
		g, err := jobdir.Acquire(dir, holder(2))
		if err != nil {
			t.Errorf("after %s: %v", data, err)
		}
		if err := g.Release(); err != nil {
			t.Error(err)
		}
	}
}

// TestGuardIsExclusive has many take turns.
func TestGuardIsExclusive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var inside, turns atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for turns.Load() < 200 {
				g, err := jobdir.Acquire(dir, holder(1))
				if _, busy := errors.AsType[*jobdir.InUseError](err); busy {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d hold the guard", n)
				}
				turns.Add(1)
				inside.Add(-1)
				if err := g.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestRunIsGuarded: while a job runs nobody else can run it, and who prepared
// it before it ran does not run it again.
func TestRunIsGuarded(t *testing.T) {
	t.Parallel()
	begun, goOn := make(chan struct{}), make(chan struct{})
	h := newHarness(t, writeDataset(t, "a"), fake.Config{Rules: []fake.Rule{
		fake.On("solve.sh", func(context.Context, *fake.Process) (int, error) {
			close(begun)
			<-goOn
			return 0, nil
		}),
		grant("1"),
	}})
	first, second := h.prepare(t), h.prepare(t)
	ended := make(chan error, 1)
	go func() {
		_, err := h.runner.Run(t.Context(), first)
		ended <- err
	}()
	<-begun
	if _, err := h.runner.Run(t.Context(), second); err == nil || !strings.Contains(err.Error(), "is in use") {
		t.Errorf("the second run gets %v", err)
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if _, err := h.runner.Run(t.Context(), second); !errors.Is(err, job.ErrOvertaken) {
		t.Errorf("the second run gets %v, want %v", err, job.ErrOvertaken)
	}
	checkWhole(t, h.dir(), 1)
	if n := h.backend.Count(fake.OpCreate); n != 1 {
		t.Errorf("%d sandboxes", n)
	}
	if _, err := os.Stat(filepath.Join(h.dir(), jobdir.GuardFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the guard is left: %v", err)
	}
}
