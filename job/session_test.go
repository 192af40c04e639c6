package job_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
)

func TestHidden(t *testing.T) {
	t.Parallel()
	task := func(path string) jobdir.TrialConfig { return jobdir.TrialConfig{Task: jobdir.TaskConfig{Path: &path}} }
	p := &job.Prepared{Trials: []jobdir.TrialConfig{
		task("/data/tasks-of-others/b"), task("/data/tasks-of-others/b"), task("/registry/c"),
	}}
	if got, want := p.TaskDirs(), []string{"/data/tasks-of-others/b", "/registry/c"}; !slices.Equal(got, want) {
		t.Errorf("hidden tasks are %q, want %q", got, want)
	}
	cfg := jobdir.Config{JobsDir: "/jobs", Tasks: []jobdir.TaskConfig{{Path: new("/tasks/a"), DownloadDir: new("/fetched")}}, Datasets: []jobdir.DatasetConfig{{Path: new("/data")}}}
	if got, want := job.Hidden(cfg, "/home/me"), []string{"/jobs", "/tasks/a", "/fetched", "/data", "/home/me/.cache/harbor"}; !slices.Equal(got, want) {
		t.Errorf("hidden of the configuration are %q, want %q", got, want)
	}
}

// newSession is a session in the sandboxes of a backend.
func newSession(b sandbox.Backend) *job.Session {
	return &job.Session{
		Runner: job.Runner{Trials: trial.Runner{Agents: agents.All()}},
		Backend: func(context.Context, []string) (sandbox.Backend, func() error, error) {
			return b, func() error { return nil }, nil
		},
	}
}

// Jobs without a name that start in the same second each get a directory.
func TestClaimInTheSameSecond(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "jobs")
	names, sessions := make([]string, 8), make([]*job.Session, 8)
	var wg sync.WaitGroup
	for i := range names {
		wg.Go(func() {
			cfg := jobdir.Config{JobName: "2026-06-09__10-00-00", JobsDir: dir}
			sessions[i] = newSession(nil)
			if err := sessions[i].Claim(&cfg, false); err != nil {
				t.Error(err)
			}
			names[i] = cfg.JobName
		})
	}
	wg.Wait()
	slices.Sort(names)
	if got := slices.Compact(slices.Clone(names)); len(got) != len(names) {
		t.Fatalf("names are %q, want them all different", names)
	}
	if names[0] != "2026-06-09__10-00-00" || names[1] != "2026-06-09__10-00-00-2" {
		t.Errorf("names start with %q", names[:2])
	}
	if err := os.WriteFile(filepath.Join(dir, names[3], "config.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range sessions {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != names[3] {
		t.Errorf("after Close %v is left (%v), want only what was written to", left, err)
	}
}

func TestClaimOfNamed(t *testing.T) {
	t.Parallel()
	cfg := jobdir.Config{JobName: "mine", JobsDir: filepath.Join(t.TempDir(), "jobs")}
	s := newSession(nil)
	if err := s.Claim(&cfg, true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(cfg.JobsDir); !os.IsNotExist(err) || cfg.JobName != "mine" {
		t.Errorf("the name is %q and the directory %v, want mine and none", cfg.JobName, err)
	}
	if err := os.MkdirAll(cfg.Dir(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.Claim(&cfg, true); err != nil {
		t.Fatal(err)
	}
	other := newSession(nil)
	if _, inUse := errors.AsType[*jobdir.InUseError](other.Claim(&cfg, true)); !inUse {
		t.Error("two sessions have the same directory")
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := other.Claim(&cfg, true); err != nil {
		t.Errorf("after Close: %v", err)
	}
	if err := other.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSession runs a job whose backend is opened late, with what it must not show,
// and released once. The first signal ends the next job, and its trial is recorded.
func TestSession(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		interrupted bool
	}{{"to the end", false}, {"interrupted", true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			data := writeDataset(t, "a-task")
			h := newHarness(t, data, fake.Config{Rules: []fake.Rule{grant("1")}})
			h.cfg.JobsDir = filepath.Join(t.TempDir(), "jobs")
			released, drained := 0, make(chan struct{})
			signals := make(chan os.Signal, 1)
			s := &job.Session{Runner: h.runner, Signals: signals, Draining: func() { close(drained) }}
			s.Backend = func(_ context.Context, hidden []string) (sandbox.Backend, func() error, error) {
				for _, path := range []string{h.cfg.JobsDir, data, filepath.Join(data, "a-task")} {
					if !slices.Contains(hidden, path) {
						t.Errorf("%s is not hidden: %q", path, hidden)
					}
				}
				return h.backend, func() error { released++; return nil }, nil
			}
			s.Runner.Emit = func(e job.Event) {
				if e.Kind == job.EventJobStart && c.interrupted {
					signals <- os.Interrupt
					<-drained
				}
			}
			if err := s.Claim(&h.cfg, false); err != nil {
				t.Fatal(err)
			}
			p, err := s.Prepare(h.cfg)
			if err != nil {
				t.Fatal(err)
			}
			out, err := s.Run(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			if out.Interrupted != c.interrupted || (out.Progress.Ended.WithReward == 1) == c.interrupted {
				t.Errorf("interrupted %v, progress %+v", out.Interrupted, out.Progress)
			}
			if err := s.Close(t.Context()); err != nil || released != 1 {
				t.Errorf("released %d times: %v", released, err)
			}
		})
	}
}
