package job_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/score"
)

func resumeOptions() job.ResumeOptions {
	return job.ResumeOptions{PrepareOptions: job.PrepareOptions{
		Now: time.Now(), Lookup: noVariables, Random: rand.IntN, Invocation: []string{"proctor", "job", "resume"},
	}}
}

func (h *harness) resume(t testing.TB, dir string, o job.ResumeOptions) (*job.Resumed, *job.Summary) {
	t.Helper()
	r, err := job.PrepareResume(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.runner.Run(t.Context(), r.Prepared)
	if err != nil {
		t.Fatal(err)
	}
	return r, out
}

// checkWhole expects a finished job of n trials that is what its trials give,
// with no directory without a result.
func checkWhole(t *testing.T, dir string, n int) {
	t.Helper()
	r, err := score.Rescore(t.Context(), dir, score.RescoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diffs := r.Check(); len(diffs) > 0 {
		t.Errorf("the job differs from its trials: %v", diffs)
	}
	if len(r.Records) != n || len(r.Unfinished) > 0 || r.Result.FinishedAt == nil {
		t.Errorf("%d trials, unfinished %v, finished at %v; want %d finished", len(r.Records), r.Unfinished, r.Result.FinishedAt, n)
	}
}

func trialOf(t *testing.T, out *job.Summary, task string) string {
	t.Helper()
	for _, r := range out.Records {
		if r.TaskName == task {
			return r.TrialName
		}
	}
	t.Fatalf("no trial of task %q", task)
	return ""
}

func readEarlier(t *testing.T, dir string, n int) *jobdir.TrialResult {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "attempts", fmt.Sprint(n), "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := jobdir.ParseTrialResult(data)
	if err != nil {
		t.Fatal(err)
	}
	return &r
}

func TestResumeRunsCancelledTrialsAgain(t *testing.T) {
	t.Parallel()
	h, ctx := newInterrupted(t)
	out, err := h.runner.Run(ctx, h.prepare(t))
	if err != nil {
		t.Fatal(err)
	}
	cancelled := trialOf(t, out, "b")
	r, again := h.resume(t, h.dir(), resumeOptions())
	if want := []job.Rerun{{TrialName: cancelled, Reason: exception.CancelledError}}; !slices.Equal(r.Reruns, want) || len(r.Orphans) > 0 || r.Moved() {
		t.Errorf("again %v, orphans %v, moved %v", r.Reruns, r.Orphans, r.Moved())
	}
	if again.Result.ID != out.Result.ID || again.Result.Stats.NErroredTrials != 0 || again.Result.Stats.NRetries != 0 {
		t.Errorf("resumed stats %+v", again.Result.Stats)
	}
	if n := h.backend.Count(fake.OpCreate); n != 4 {
		t.Errorf("%d sandboxes, want 4: finished trials run once", n)
	}
	if got := trialOf(t, again, "b"); got != cancelled {
		t.Errorf("trial %q ran again as %q", cancelled, got)
	}
	earlier := readEarlier(t, filepath.Join(h.dir(), cancelled), 1)
	if earlier.ExceptionInfo == nil || earlier.ExceptionInfo.Type != exception.CancelledError {
		t.Errorf("the earlier attempt has exception %v", earlier.ExceptionInfo)
	}
	checkWhole(t, h.dir(), 3)

	r, again = h.resume(t, h.dir(), resumeOptions())
	if len(r.Remaining) != 0 || h.backend.Count(fake.OpCreate) != 4 || again.Result.Stats.NCompletedTrials != 3 {
		t.Errorf("resumed once more: %d trials ran", len(r.Remaining))
	}
}

// A run that is interrupted again before a trial's turn leaves it as it was.
func TestInterruptedResumeLosesNothing(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "a"), fake.Config{
		Before: fake.FailAt(fake.OpCreate, 1, nil),
		Rules:  []fake.Rule{grant("1")},
	})
	dir := filepath.Join(h.dir(), h.run(t).Records[0].TrialName)
	before := names(t, dir)
	o := resumeOptions()
	o.Errored = true
	r, err := job.PrepareResume(h.dir(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.runner.Run(ctx, r.Prepared); err != nil {
		t.Fatal(err)
	}
	if after := names(t, dir); !slices.Equal(before, after) {
		t.Errorf("the trial held %v, now %v", before, after)
	}
	h.resume(t, h.dir(), o)
	checkWhole(t, h.dir(), 1)
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]string, len(entries))
	for i, e := range entries {
		list[i] = e.Name()
	}
	return list
}

func TestResumeChoosesTrials(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*job.ResumeOptions)
		want   []string // tasks
	}{
		{"default", func(*job.ResumeOptions) {}, nil},
		{"type", func(o *job.ResumeOptions) { o.Types = []string{"RuntimeError"} }, []string{"no-sandbox"}},
		{"other type", func(o *job.ResumeOptions) { o.Types = []string{"AgentTimeoutError"} }, []string{"scored-error"}},
		{"errored", func(o *job.ResumeOptions) { o.Errored = true }, []string{"no-sandbox", "no-verdict", "scored-error"}},
		{"unscored", func(o *job.ResumeOptions) { o.Unscored = true }, []string{"no-sandbox", "no-verdict"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, writeDataset(t, "good", "no-sandbox", "no-verdict", "scored-error"), fake.Config{
				Before: fake.FailAt(fake.OpCreate, 2, nil),
				Rules: []fake.Rule{
					fake.On("/tests/test.sh", fake.Each(fake.Write("/logs/verifier/reward.txt", "1"), fake.Exit(0), fake.Write("/logs/verifier/reward.txt", "0.5"))),
				},
			})
			h.cfg.NConcurrentTrials = 1
			setException(t, filepath.Join(h.dir(), trialOf(t, h.run(t), "scored-error")), "AgentTimeoutError")
			o := resumeOptions()
			tt.change(&o)
			r, err := job.PrepareResume(h.dir(), o)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, a := range r.Reruns {
				task, _, _ := strings.Cut(a.TrialName, "__")
				got = append(got, task)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("runs again: %v, want %v", got, tt.want)
			}
		})
	}
}

// setException writes an exception into a trial's result.
func setException(t *testing.T, dir, typ string) {
	t.Helper()
	path := filepath.Join(dir, "result.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := jobdir.ParseTrialResult(data)
	if err != nil {
		t.Fatal(err)
	}
	r.ExceptionInfo = &jobdir.ExceptionInfo{Type: typ}
	if err := os.WriteFile(path, r.AppendJSON(nil, nil), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Directories as a killed process leaves them, with a journal and without one,
// as Harbor leaves them.
func TestResumeAfterACrash(t *testing.T) {
	t.Parallel()
	t.Run("journal", func(t *testing.T) {
		t.Parallel()
		testResumeAfterACrash(t, true, []string{
			"its result.json is gone, though the journal says that it ended", "its result.json cannot be read: 100 of ",
			"its result.json is gone, though the journal says that it ended",
		})
	})
	t.Run("no journal", func(t *testing.T) {
		t.Parallel()
		testResumeAfterACrash(t, false, []string{"it never ended", "its result.json cannot be read", "it never ended"})
	})
}

func testResumeAfterACrash(t *testing.T, journaled bool, reasons []string) {
	h := newHarness(t, writeDataset(t, "a", "b", "c", "d"), fake.Config{Rules: []fake.Rule{grant("1")}})
	out := h.run(t)
	dirOf := func(task string) string { return filepath.Join(h.dir(), trialOf(t, out, task)) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Remove(filepath.Join(dirOf("a"), "result.json")))        // died while it ran
	must(os.Truncate(filepath.Join(dirOf("b"), "result.json"), 100)) // died while the disk was written
	// Died between two attempts.
	entries := names(t, dirOf("c"))
	must(os.MkdirAll(filepath.Join(dirOf("c"), "attempts", "1"), 0o755))
	for _, name := range entries {
		must(os.Rename(filepath.Join(dirOf("c"), name), filepath.Join(dirOf("c"), "attempts", "1", name)))
	}
	// Nobody's.
	must(os.MkdirAll(filepath.Join(h.dir(), "stray", "agent"), 0o755))
	must(os.Truncate(filepath.Join(h.dir(), "result.json"), 10))
	if !journaled {
		must(os.Remove(filepath.Join(h.dir(), journal.File)))
	}

	r, again := h.resume(t, h.dir(), resumeOptions())
	for i, task := range []string{"a", "b", "c"} {
		if len(r.Reruns) != 3 || r.Reruns[i].TrialName != filepath.Base(dirOf(task)) || !strings.HasPrefix(r.Reruns[i].Reason, reasons[i]) {
			t.Errorf("again %v, want %s because %s", r.Reruns, task, reasons[i])
		}
	}
	if !slices.Equal(r.Orphans, []string{"stray"}) {
		t.Errorf("orphans %v", r.Orphans)
	}
	if again.Result.ID != out.Result.ID || len(r.Repaired) != 1 || strings.Contains(r.Repaired[0], "not known any more") == journaled {
		t.Errorf("job %v was %v, repaired %v", again.Result.ID, out.Result.ID, r.Repaired)
	}
	if n := h.backend.Count(fake.OpCreate); n != 4+3 {
		t.Errorf("%d sandboxes, want 7", n)
	}
	for _, task := range []string{"a", "b", "c"} {
		if got := names(t, filepath.Join(dirOf(task), "attempts")); !slices.Equal(got, []string{"1"}) {
			t.Errorf("trial of %s has earlier attempts %v", task, got)
		}
	}
	if _, err := os.Stat(filepath.Join(r.OrphansDir, "stray", "agent")); err != nil {
		t.Error(err)
	}
	checkWhole(t, h.dir(), 4)
}

func TestResumeOfAMovedJob(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "a", "b"), fake.Config{
		Before: fake.FailAt(fake.OpCreate, 2, nil),
		Rules:  []fake.Rule{grant("1")},
	})
	h.cfg.NConcurrentTrials = 1
	h.run(t)
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(h.dir(), moved); err != nil {
		t.Fatal(err)
	}
	o := resumeOptions()
	o.Errored = true
	for range 2 { // it can be moved and then resumed any number of times
		r, _ := h.resume(t, moved, o)
		if r.Config.Dir() != moved {
			t.Errorf("resumed in %q, configured %q", r.Config.Dir(), r.ConfiguredDir)
		}
		checkWhole(t, moved, 2)
	}
	if _, err := os.Stat(h.dir()); err == nil {
		t.Error("the configured directory was made")
	}
	if n := h.backend.Count(fake.OpCreate); n != 3 {
		t.Errorf("%d sandboxes, want 3", n)
	}
}

func TestResumeOfNoJob(t *testing.T) {
	t.Parallel()
	if _, err := job.PrepareResume(t.TempDir(), resumeOptions()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// TestResumeKeepsTheOrderOfTheDirectory: trials are read several at a time, and
// what is found is in order of their names.
func TestResumeKeepsTheOrderOfTheDirectory(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "a"), fake.Config{Rules: []fake.Rule{grant("1")}})
	out := h.run(t)
	var want []string
	for i := range 700 {
		name := fmt.Sprintf("stray-%03d", i)
		want = append(want, name)
		if err := os.Mkdir(filepath.Join(h.dir(), name), 0o755); err != nil {
			t.Fatal(err)
		}
		if i%3 > 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(h.dir(), name, "result.json"), []byte("{"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, err := job.PrepareResume(h.dir(), resumeOptions())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Orphans, want) {
		t.Errorf("orphans %q", r.Orphans)
	}
	if len(r.Remaining) > 0 || len(r.Existing) != 1 || r.Existing[0].TrialName != trialOf(t, out, "a") {
		t.Errorf("remaining %v, existing %v", r.Remaining, r.Existing)
	}
}
