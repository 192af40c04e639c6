package job_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// checkFiles fails the test when a JSON file below dir is not whole, or a
// temporary file is left.
func checkFiles(t *testing.T, dir string) (results int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		if strings.Contains(e.Name(), ".tmp-") {
			t.Errorf("a temporary file is left: %s", path)
		}
		if filepath.Ext(path) != ".json" {
			return nil
		}
		data, err := os.ReadFile(path)
		if err == nil && !json.Valid(data) {
			t.Errorf("%s is not whole: %d bytes", path, len(data))
		}
		if e.Name() == scan.ResultFile {
			results++
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return results
}

// fails runs the job, which must stop with one clear reason and leave nothing.
func (h *harness) fails(t *testing.T, reasons ...string) error {
	t.Helper()
	p, err := job.Prepare(h.cfg, job.PrepareOptions{Now: time.Now(), Lookup: noVariables, Random: func(int) int { return 0 }})
	if err == nil {
		_, err = h.runner.Run(t.Context(), p)
	}
	if err == nil {
		t.Fatal("the job ended without an error")
	}
	for _, reason := range reasons {
		if !strings.Contains(err.Error(), reason) {
			t.Errorf("the error does not say %q: %v", reason, err)
		}
	}
	if live := h.backend.Live(); live != 0 {
		t.Errorf("%d sandboxes are left", live)
	}
	return err
}

func TestResultThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	var h *harness
	block := func(_ context.Context, p *fake.Process) (int, error) {
		name := strings.TrimSuffix(p.Sandbox.Spec().Name, "__verifier")
		return 0, os.MkdirAll(filepath.Join(h.dir(), name, scan.ResultFile, "in the way"), 0o755)
	}
	h = newHarness(t, writeDataset(t, "a", "b", "c"), fake.Config{Rules: []fake.Rule{
		fake.On("solve.sh", fake.Each(fake.Exit(0), block, fake.Exit(0))), grant("1"),
	}})
	h.cfg.NConcurrentTrials = 1
	_ = h.fails(t, "writing the result of trial", scan.ResultFile)
	checkFiles(t, h.dir())
	data, err := os.ReadFile(filepath.Join(h.dir(), scan.ResultFile))
	if err != nil {
		t.Fatal(err)
	}
	stored, err := jobdir.ParseResult(data)
	if err != nil || stored.FinishedAt != nil || stored.NTotalTrials != 3 {
		t.Errorf("stored result: %v, %+v", err, stored)
	}
	if n := h.backend.Count(fake.OpCreate); n != 2 {
		t.Errorf("%d sandboxes were made, want 2: nothing is begun when results cannot be kept", n)
	}
}

// jumping is a clock that is set forth and back by days at every look.
func jumping() func() time.Time {
	var looks atomic.Int64
	return func() time.Time {
		days := []int{0, 3, -2, 9, -30, 1}
		at := time.Now().Round(0) // without what only passes
		return at.AddDate(0, 0, days[int(looks.Add(1))%len(days)])
	}
}

func TestClockThatJumps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, writeDataset(t, "good", "slow"), fake.Config{Rules: []fake.Rule{
			fake.On("solve.sh", func(ctx context.Context, p *fake.Process) (int, error) {
				if strings.HasPrefix(p.Sandbox.Spec().Name, "slow") {
					return fake.Hang()(ctx, p) // its limit must pass all the same
				}
				return fake.Sleep(50*time.Second)(ctx, p) // and this one's must not
			}),
			grant("1"),
		}})
		h.runner.Trials.Now = jumping()
		for _, name := range []string{"good", "slow"} {
			path := filepath.Join(*h.cfg.Datasets[0].Path, name, "task.toml")
			if err := os.WriteFile(path, []byte("[agent]\ntimeout_sec = 60.0\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		out := h.run(t)
		if took := time.Since(began); took < 60*time.Second || took > 70*time.Second {
			t.Errorf("the job took %s, want about a minute", took)
		}
		s := out.Result.Stats
		if s.NCompletedTrials != 2 || s.NErroredTrials != 1 || out.Progress.Ended.Errors["AgentTimeoutError"] != 1 {
			t.Errorf("stats %+v, errors %v", s, out.Progress.Ended.Errors)
		}
		if out.Result.FinishedAt.In(time.UTC).Before(out.Result.StartedAt.In(time.UTC)) {
			t.Errorf("the job ends at %s and began at %s", out.Result.FinishedAt, out.Result.StartedAt)
		}
		checkTimes(t, h.dir())
	})
}

// checkTimes fails the test when something ended before it began.
func checkTimes(t *testing.T, dir string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*__*", scan.ResultFile))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no results: %v", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := jobdir.ParseTrialResult(data)
		if err != nil {
			t.Fatal(err)
		}
		spans := []*jobdir.Timing{{StartedAt: r.StartedAt, FinishedAt: r.FinishedAt}, r.EnvironmentSetup, r.AgentSetup, r.AgentExecution, r.Verifier}
		for _, span := range spans {
			if span != nil && span.FinishedAt.In(time.UTC).Before(span.StartedAt.In(time.UTC)) {
				t.Errorf("%s: something began at %s and ended at %s", path, span.StartedAt, span.FinishedAt)
			}
		}
	}
}

func TestResumeWithAClockSetBack(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "a", "b"), fake.Config{Rules: []fake.Rule{grant("1")}})
	first := h.run(t)
	removed, err := filepath.Glob(filepath.Join(h.dir(), "b__*"))
	if err != nil || len(removed) != 1 {
		t.Fatalf("%v, %v", removed, err)
	}
	if err := os.RemoveAll(removed[0]); err != nil {
		t.Fatal(err)
	}
	h.runner.Trials.Now = func() time.Time { return time.Now().AddDate(0, 0, -3) }
	out := h.run(t)
	if out.Result.StartedAt != first.Result.StartedAt || out.Result.FinishedAt.In(time.UTC).Before(out.Result.StartedAt.In(time.UTC)) {
		t.Errorf("the job began at %s and ended at %s", out.Result.StartedAt, out.Result.FinishedAt)
	}
	checkTimes(t, h.dir())
}

// TestBackendThatVanishes: an engine that goes away is every trial's own error
// and no score; the job goes on to its end.
func TestBackendThatVanishes(t *testing.T) {
	t.Parallel()
	gone := errors.New("dial unix /var/run/docker.sock: connect: no such file or directory")
	var down atomic.Bool
	h := newHarness(t, writeDataset(t, "a", "b", "c"), fake.Config{
		Before: func(_ context.Context, c fake.Call) error {
			if down.Load() && c.Op != fake.OpDestroy {
				return gone
			}
			return nil
		},
		Rules: []fake.Rule{
			fake.On("solve.sh", func(context.Context, *fake.Process) (int, error) {
				down.Store(true)
				return 0, gone
			}), grant("1"),
		},
	})
	h.cfg.NConcurrentTrials = 1
	out := h.run(t)
	if s := out.Result.Stats; s.NCompletedTrials != 3 || s.NErroredTrials != 3 || out.Progress.Ended.Outcomes[jobdir.ClassErroredWithoutReward] != 3 {
		t.Errorf("stats %+v, progress %+v", s, out.Progress)
	}
	if n := checkFiles(t, h.dir()); n != 4 {
		t.Errorf("%d results, want 4", n)
	}
}
