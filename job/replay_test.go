package job_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
)

// toolsHarness runs agent tools twice on each of the tasks, one trial after the other.
func toolsHarness(t *testing.T, dataset string) *harness {
	t.Helper()
	h := newHarness(t, dataset, fake.Config{Rules: []fake.Rule{grant("0.5")}})
	a := jobdir.NewAgentConfig()
	a.Name, a.ModelName = new("tools"), new("openai/m")
	h.cfg.Agents, h.cfg.NAttempts, h.cfg.NConcurrentTrials = []jobdir.AgentConfig{a}, 2, 1
	return h
}

// scripted opens models of which each says which one it is; the third fails after that.
func scripted() llm.Opener {
	var opened atomic.Int64
	return llm.OpenerFunc(func(name string, _ llm.Options) (llm.Model, error) {
		n := opened.Add(1)
		first := llmtest.Call(llm.ToolCall{ID: "1", Name: "bash", Arguments: fmt.Sprintf(`{"command": "echo %d"}`, n)})
		last := llmtest.Call(llm.ToolCall{ID: "2", Name: "final_step", Arguments: "{}"})
		first.Response.Cost, last.Response.Cost = new(float64(n)/8), new(0.1)
		if n == 3 {
			last = llmtest.Answer{Err: &llm.Error{Kind: llm.RateLimited, Model: name, Status: 429, RetryAfter: time.Hour, Message: "too much"}}
		}
		return &llmtest.Script{About: llm.Info{Name: name, InputLimit: 1000}, Answers: []llmtest.Answer{first, last}}, nil
	})
}

// offline opens models by name as programs do, and fails the test when one is opened.
func offline(t *testing.T) llm.Opener {
	t.Helper()
	return &llm.Client{Dial: func(e llm.Endpoint) (llm.Model, error) {
		t.Errorf("a replay opened %s", e.Name)
		return nil, errors.New("there is no network")
	}}
}

// inOrder are the results of a job in the order in which its trials began.
func inOrder(t *testing.T, dir string) []*jobdir.TrialResult {
	t.Helper()
	list := storedTrials(t, dir)
	slices.SortFunc(list, func(a, b *jobdir.TrialResult) int { return a.StartedAt.In(time.UTC).Compare(b.StartedAt.In(time.UTC)) })
	return list
}

var timestamps = regexp.MustCompile(`"timestamp": ?"[^"]*"`)

// trajectoryText is the trajectory of a trial without its times.
func trajectoryText(t *testing.T, dir, trial string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, trial, "agent", "trajectory.json"))
	if err != nil {
		t.Fatal(err)
	}
	return timestamps.ReplaceAllString(string(data), "")
}

// recordedJob is the directory of a job that has recordings.
func recordedJob(t *testing.T, dataset string) string {
	t.Helper()
	h := toolsHarness(t, dataset)
	h.runner.Trials.Models = scripted()
	h.run(t)
	return h.dir()
}

// TestReplay: a job that replays another comes to the same, faults and all, without a key
// and without a network.
func TestReplay(t *testing.T) {
	t.Parallel()
	dataset := writeDataset(t, "a", "b")
	recorded := recordedJob(t, dataset)
	h := toolsHarness(t, dataset)
	h.runner.Trials.Models = offline(t)
	h.runner.Recordings = &job.Recordings{Dir: recorded, Strict: true}
	h.run(t)
	want, got := inOrder(t, recorded), inOrder(t, h.dir())
	if len(want) != 4 || len(got) != 4 || exceptionOf(want[2]) != "RateLimitError" {
		t.Fatalf("%d and %d trials, the third failed with %q", len(want), len(got), exceptionOf(want[2]))
	}
	for i := range want {
		w, g := want[i], got[i]
		for _, r := range []*jobdir.TrialResult{w, g} {
			r.AgentResult.Metadata.Delete("api_request_times_msec")
		}
		if !reflect.DeepEqual(w.AgentResult, g.AgentResult) || !reflect.DeepEqual(w.VerifierResult, g.VerifierResult) || exceptionOf(w) != exceptionOf(g) {
			t.Errorf("trial %d: got %+v, %+v, %q, want %+v, %+v, %q", i, g.AgentResult, g.VerifierResult, exceptionOf(g), w.AgentResult, w.VerifierResult, exceptionOf(w))
		}
		if g.ExceptionInfo != nil && g.ExceptionInfo.Message != w.ExceptionInfo.Message {
			t.Errorf("trial %d failed with %q, want %q", i, g.ExceptionInfo.Message, w.ExceptionInfo.Message)
		}
		if g, w := trajectoryText(t, h.dir(), g.TrialName), trajectoryText(t, recorded, w.TrialName); g != w || !strings.Contains(g, fmt.Sprintf("echo %d", i+1)) {
			t.Errorf("the trajectory of trial %d is\n%s\nwant\n%s", i, g, w)
		}
		if notes, err := jobdir.ReadNotes(filepath.Join(h.dir(), g.TrialName)); err != nil || notes.ReplayedFrom != w.TrialName || len(notes.Warnings) > 0 {
			t.Errorf("notes %+v, %v", notes, err)
		}
	}
}

// interrupted is the resumption of a job that replays recordings and was interrupted after
// its first trial.
func interrupted(t *testing.T, h *harness, recorded string) *job.Resumed {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.runner.Trials.Models, h.runner.Recordings = offline(t), &job.Recordings{Dir: recorded}
	watch := h.runner.Emit
	h.runner.Emit = func(e job.Event) {
		if watch(e); e.Trial != nil && e.Trial.Kind == trial.EventEnd {
			cancel()
		}
	}
	if out, err := h.runner.Run(ctx, h.prepare(t)); err != nil || !out.Interrupted {
		t.Fatalf("%v, %+v", err, out)
	}
	h.runner.Emit, h.runner.Recordings = watch, nil
	resumed, err := job.PrepareResume(h.dir(), job.ResumeOptions{PrepareOptions: sourceOptions(t)})
	if err != nil || len(resumed.Existing) != 1 {
		t.Fatalf("%v, %+v are kept", err, resumed)
	}
	return resumed
}

// TestReplayIsResumed: a job goes on with the recordings that it was started with, and what
// its finished trials were given is not given again.
func TestReplayIsResumed(t *testing.T) {
	t.Parallel()
	dataset := writeDataset(t, "a")
	recorded := recordedJob(t, dataset)
	h := toolsHarness(t, dataset)
	resumed := interrupted(t, h, recorded)
	if _, err := h.runner.Run(t.Context(), resumed.Prepared); err != nil {
		t.Fatal(err)
	}
	want, got := map[string]int{}, map[string]int{}
	for _, r := range storedTrials(t, recorded) {
		want[r.TrialName] = 1
	}
	for _, r := range storedTrials(t, h.dir()) {
		notes, err := jobdir.ReadNotes(filepath.Join(h.dir(), r.TrialName))
		if err != nil {
			t.Fatal(err)
		}
		got[notes.ReplayedFrom]++
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the recordings were given to %v, want %v", got, want)
	}
}

// TestReplayIsNotMixed: no job replays in some trials and calls models in others, also where
// its journal is damaged.
func TestReplayIsNotMixed(t *testing.T) {
	t.Parallel()
	dataset := writeDataset(t, "a")
	recorded := recordedJob(t, dataset)
	h := toolsHarness(t, dataset)
	resumed := interrupted(t, h, recorded)
	journalFile := filepath.Join(h.dir(), "journal.jsonl")
	data, err := os.ReadFile(journalFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(journalFile, append([]byte("damage\n"), data...), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := h.runner.Run(t.Context(), resumed.Prepared); err == nil || !strings.Contains(err.Error(), "which recordings the job replays") {
		t.Errorf("with a damaged journal: %v", err)
	}

	called := toolsHarness(t, dataset)
	called.cfg.JobsDir, called.cfg.JobName = filepath.Split(recorded)
	called.cfg.JobsDir = filepath.Clean(called.cfg.JobsDir)
	called.runner.Recordings = &job.Recordings{Dir: recorded}
	again, err := job.PrepareResume(recorded, job.ResumeOptions{PrepareOptions: sourceOptions(t)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := called.runner.Run(t.Context(), again.Prepared); !errors.Is(err, job.ErrNotReplayed) {
		t.Errorf("trials that called models: %v", err)
	}
}

// TestRecordings: each goes to one trial, which keeps it, in the order in which they began.
func TestRecordings(t *testing.T) {
	t.Parallel()
	recorded := recordedJob(t, writeDataset(t, "a"))
	trials := inOrder(t, recorded)
	cfg := trials[0].Config
	r := &job.Recordings{Dir: recorded}
	for _, step := range []struct {
		trial, model string
		want         string
	}{
		{"one", "openai/m", trials[0].TrialName},
		{"two", "openai/m", trials[1].TrialName},
		{"one", "openai/m", trials[0].TrialName},
		{"three", "openai/m", ""},
		{"four", "openai/other", ""},
	} {
		cfg.TrialName, cfg.Agent.ModelName = step.trial, new(step.model)
		got, err := r.Replay(cfg)
		switch {
		case step.want == "" && exception.TypeOf(err) == llm.ReplayDivergedError && strings.Contains(err.Error(), step.model):
		case step.want == "" || err != nil || got.Name != step.want:
			t.Errorf("trial %s got %+v, %v, want %s", step.trial, got, err, step.want)
		}
	}
	cfg.TrialName, cfg.Agent.ModelName = "one", new("openai/m")
	one := &job.Recordings{Dir: filepath.Join(recorded, trials[1].TrialName)}
	if got, err := one.Replay(cfg); err != nil || got.Name != trials[1].TrialName {
		t.Errorf("of one trial: %+v, %v", got, err)
	}
}

// TestBadRecordings: what cannot be replayed is the error of its trial.
func TestBadRecordings(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		spoil func(trial, calls string) error
		want  string
	}{
		{"a link that leads out", func(_, calls string) error { return errors.Join(os.Remove(calls), os.Symlink(secret, calls)) }, "leads out of its directory"},
		{"a directory", func(_, calls string) error { return errors.Join(os.Remove(calls), os.Mkdir(calls, 0o755)) }, "expected a regular file"},
		{"too large", func(_, calls string) error { return os.Truncate(calls, jobdir.MaxModelCalls+1) }, "too large"},
		{"a cut recording", func(_, calls string) error { return os.WriteFile(calls, []byte(`{"cut":"why"}`+"\n"), 0o644) }, "the recording is cut: why"},
		{"no recording", func(_, calls string) error { return os.Remove(calls) }, "has no recording"},
		{"a trial that did not finish", func(trial, _ string) error { return os.Remove(filepath.Join(trial, scan.ResultFile)) }, "has no recording"},
		{"no job", func(trial, _ string) error { return os.RemoveAll(filepath.Dir(trial)) }, "looking for recordings"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := toolsHarness(t, writeDataset(t, "a"))
			h.cfg.NAttempts = 1
			h.runner.Trials.Models = scripted()
			h.run(t)
			recorded := storedTrials(t, h.dir())[0]
			trial := filepath.Join(h.dir(), recorded.TrialName)
			if err := c.spoil(trial, filepath.Join(trial, "agent", jobdir.ModelCallsFile)); err != nil {
				t.Fatal(err)
			}
			_, err := (&job.Recordings{Dir: h.dir()}).Replay(recorded.Config)
			if exception.TypeOf(err) != llm.ReplayDivergedError || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
