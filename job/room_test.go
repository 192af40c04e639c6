package job_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
)

// TestRoom: trials whose tasks do not fit beside each other run one after the other, and
// say why they wait; those that fit run at once.
func TestRoom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		toml string
		most int // trials at once
		why  string
	}{
		{"", 2, "0 of 2 processors are free, and it needs 1"}, // 1 processor and 2 GiB each
		{"[environment]\nmemory_mb = 3000\n", 1, "1096 of 4096 MiB of memory are free, and it needs 3000"},
		{"[environment]\ncpus = 2\n", 1, "0 of 2 processors are free, and it needs 2"},
		{"[environment]\nstorage_mb = 600\n", 1, "400 of 1000 MiB of disk are free, and it needs 600"},
		{"[environment]\nmemory_mb = 99999\n", 1, "0 of 4096 MiB of memory are free, and it needs 4096"},
	} {
		t.Run(c.toml, func(t *testing.T) {
			t.Parallel()
			dataset := writeDataset(t, "a", "b", "c")
			for _, name := range []string{"a", "b", "c"} {
				if err := os.WriteFile(filepath.Join(dataset, name, "task.toml"), []byte(c.toml), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			h := newHarness(t, dataset, fake.Config{Rules: []fake.Rule{fake.On("solve.sh", fake.Sleep(50*time.Millisecond)), grant("1")}})
			h.runner.Room = &job.Room{CPUs: 2, MemoryMiB: 4096, DiskMiB: 1000}
			if out := h.run(t); out.Result.Stats.NCompletedTrials != 3 {
				t.Errorf("ended: %+v", out.Result.Stats)
			}
			most, reasons := h.atOnce()
			if most != c.most || !slices.Equal(reasons, []string{"waits: " + c.why}) {
				t.Errorf("%d at once, waits %q", most, reasons)
			}
			before, _, err := journal.Before(h.dir())
			if err != nil || !before.Shared {
				t.Errorf("the journal does not say how many run at once: %+v, %v", before, err)
			}
		})
	}
}

// atOnce is how many trials ran at once at most, and why others waited.
func (h *harness) atOnce() (most int, reasons []string) {
	running := map[string]bool{}
	for _, e := range h.events {
		switch {
		case e.Kind == job.EventWait && !slices.Contains(reasons, e.Message):
			reasons = append(reasons, e.Message)
		case e.Kind == job.EventTrial && e.Trial.Kind == trial.EventStart:
			running[e.Trial.TrialName] = true
		case e.Kind == job.EventTrial && e.Trial.Kind == trial.EventEnd:
			delete(running, e.Trial.TrialName)
		}
		most = max(most, len(running))
	}
	return most, reasons
}

// TestRoomOfRetries: an attempt that failed gives its room back before the next one.
func TestRoomOfRetries(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "a", "b"), fake.Config{Rules: []fake.Rule{fake.On("/tests/test.sh", fake.Exit(0))}})
	h.runner.Room = &job.Room{CPUs: 1, MemoryMiB: 1 << 20}
	h.cfg.Retry.MaxRetries, h.cfg.Retry.ExcludeExceptions = 1, nil
	h.run(t)
	var order []string
	for _, e := range h.events {
		if e.Kind == job.EventTrial && e.Trial.Kind == trial.EventStart {
			order = append(order, fmt.Sprintf("%s%d", e.Trial.TaskName, e.Trial.Attempt))
		}
	}
	slices.Sort(order)
	if got := strings.Join(order, " "); got != "a1 a2 b1 b2" {
		t.Errorf("attempts %s", got)
	}
}

// telling is a backend that knows what its sandboxes share.
type telling struct {
	sandbox.Backend
	host sandbox.Host
	err  error
}

func (t telling) Host(context.Context) (sandbox.Host, error) { return t.host, t.err }

// TestShareMachine: what a backend says of its machine counts; what fits on another one of
// which nothing is known is not known.
func TestShareMachine(t *testing.T) {
	t.Parallel()
	this, gone := job.ThisMachine(), errors.New("gone")
	plain := func(here bool) sandbox.Backend {
		return fake.New(fake.Config{Dir: t.TempDir(), Capabilities: &sandbox.Capabilities{Mounted: here}})
	}
	for name, c := range map[string]struct {
		backend sandbox.Backend
		want    *job.Room
	}{
		"here":      {plain(true), &this},
		"elsewhere": {plain(false), nil},
		"told":      {telling{plain(false), sandbox.Host{CPUs: 3, MemoryMiB: 100, DiskMiB: 50}, nil}, &job.Room{CPUs: 3, MemoryMiB: 100, DiskMiB: 50}},
		"half told": {telling{plain(true), sandbox.Host{DiskMiB: 50}, nil}, &job.Room{CPUs: this.CPUs, MemoryMiB: this.MemoryMiB, DiskMiB: 50}},
		"not told":  {telling{plain(true), sandbox.Host{}, gone}, nil},
	} {
		s := &job.Session{Backend: func(context.Context, []string) (sandbox.Backend, func() error, error) {
			return c.backend, func() error { return nil }, nil
		}}
		if err := s.Open(t.Context(), &job.Prepared{}); err != nil {
			t.Fatal(err)
		}
		err := s.ShareMachine(t.Context())
		if diff := cmp.Diff(c.want, s.Runner.Room); diff != "" || (err == nil) != (c.want != nil) {
			t.Errorf("%s: %v, %s", name, err, diff)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
