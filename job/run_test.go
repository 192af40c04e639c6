package job_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/trial"
)

// writeDataset makes a dataset of tasks with these names.
func writeDataset(t testing.TB, names ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "set")
	for _, name := range names {
		for file, content := range map[string]string{
			"task.toml": "", "instruction.md": name, "environment/Dockerfile": "FROM x\n", "tests/test.sh": name, "solution/solve.sh": name,
		} {
			path := filepath.Join(dir, name, filepath.FromSlash(file))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// harness runs jobs on the fake backend.
type harness struct {
	backend *fake.Backend
	runner  job.Runner
	cfg     jobdir.Config

	mu     sync.Mutex
	events []job.Event
}

func newHarness(t testing.TB, dataset string, cfg fake.Config) *harness {
	t.Helper()
	cfg.Dir = t.TempDir()
	h := &harness{backend: fake.New(cfg), cfg: jobdir.NewConfig(time.Now())}
	t.Cleanup(func() { fake.Verify(t, h.backend) })
	h.cfg.JobsDir, h.cfg.JobName = t.TempDir(), "the-job"
	h.cfg.Datasets = []jobdir.DatasetConfig{{Path: &dataset}}
	h.runner = job.Runner{
		Trials: trial.Runner{Backend: h.backend, Lookup: noVariables, Now: time.Now, Agents: agents.All()},
		Sleep:  func(context.Context, time.Duration) error { return nil },
		Emit: func(e job.Event) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.events = append(h.events, e)
		},
	}
	return h
}

func noVariables(string) (string, bool) { return "", false }

func (h *harness) prepare(t testing.TB) *job.Prepared {
	t.Helper()
	p, err := job.Prepare(h.cfg, job.PrepareOptions{Now: time.Now(), Lookup: noVariables, Random: rand.IntN, Invocation: []string{"proctor", "run"}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (h *harness) run(t testing.TB) *job.Summary {
	t.Helper()
	out, err := h.runner.Run(t.Context(), h.prepare(t))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (h *harness) dir() string { return h.cfg.Dir() }

func grant(text string) fake.Rule {
	return fake.On("/tests/test.sh", fake.Write("/logs/verifier/reward.txt", text))
}

func TestJobDirectory(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "b-task", "a-task"), fake.Config{Rules: []fake.Rule{grant("1")}})
	out := h.run(t)
	for _, name := range []string{"config.json", "lock.json", "result.json", "job.log"} {
		if _, err := os.Stat(filepath.Join(h.dir(), name)); err != nil {
			t.Error(err)
		}
	}
	data, err := os.ReadFile(filepath.Join(h.dir(), "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != string(out.Result.AppendJSON(nil)) {
		t.Errorf("result.json differs from the outcome:\n%s", data)
	}
	stored, err := jobdir.ParseResult(data)
	if err != nil || stored.FinishedAt == nil || stored.Stats.NCompletedTrials != 2 {
		t.Errorf("stored result: %v %+v", err, stored)
	}
	rescored, err := score.Rescore(t.Context(), h.dir(), score.RescoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diffs := rescored.Check(); len(diffs) > 0 {
		t.Errorf("aggregated again, the job differs: %v", diffs)
	}
	var names []string
	for _, r := range out.Records {
		names = append(names, r.TaskName)
	}
	if !slices.Equal(names, []string{"a-task", "b-task"}) {
		t.Errorf("order of trials %v", names)
	}
}

func TestOrderFollowsThePlan(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "a", "b", "c"), fake.Config{Rules: []fake.Rule{
		fake.On("solve.sh", fake.Each(fake.Sleep(60*time.Millisecond), fake.Sleep(20*time.Millisecond), fake.Exit(0))),
		grant("1"),
	}})
	h.cfg.NAttempts, h.cfg.NConcurrentTrials = 2, 6
	var got []string
	for _, r := range h.run(t).Records {
		got = append(got, r.TaskName)
	}
	if want := []string{"a", "b", "c", "a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

func TestConcurrencyIsBounded(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "a", "b", "c", "d", "e"), fake.Config{Rules: []fake.Rule{fake.On("solve.sh", fake.Sleep(5*time.Millisecond)), grant("1")}})
	h.cfg.NAttempts, h.cfg.NConcurrentTrials = 4, 3
	h.run(t)
	if most := h.backend.MostLive(); most > 3 {
		t.Errorf("%d sandboxes at once, want at most 3", most)
	}
}

func TestRetriesKeepEarlierAttempts(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "flaky"), fake.Config{
		Before: fake.Faults(fake.FailAt(fake.OpCreate, 1, nil), fake.FailAt(fake.OpCreate, 2, nil)),
		Rules:  []fake.Rule{grant("1")},
	})
	h.cfg.Retry.MaxRetries = 2
	out := h.run(t)
	if s := out.Result.Stats; s.NRetries != 2 || s.NErroredTrials != 0 || s.NCompletedTrials != 1 {
		t.Errorf("stats %+v", s)
	}
	if p := out.Progress; p.Ended.Outcomes[jobdir.ClassScored] != 1 || p.Ended.Trials != 1 || p.Ended.Outcomes[jobdir.ClassErroredWithoutReward] != 0 {
		t.Errorf("progress %+v", p)
	}
	trialDir := filepath.Join(h.dir(), out.Records[0].TrialName)
	for _, n := range []string{"1", "2"} {
		data, err := os.ReadFile(filepath.Join(trialDir, "attempts", n, "result.json"))
		if err != nil {
			t.Fatal(err)
		}
		earlier, err := jobdir.ParseTrialResult(data)
		if err != nil || earlier.ExceptionInfo == nil || earlier.ExceptionInfo.Type != "RuntimeError" {
			t.Errorf("attempt %s: %v, %+v", n, err, earlier.ExceptionInfo)
		}
	}
	if _, err := os.Stat(filepath.Join(trialDir, "exception.txt")); err == nil {
		t.Error("the last attempt has the exception of an earlier one")
	}
}

func TestExcludedExceptionsAreNotRetried(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "silent"), fake.Config{})
	h.cfg.Retry.MaxRetries = 3
	if s := h.run(t).Result.Stats; s.NRetries != 0 || s.NErroredTrials != 1 {
		t.Errorf("stats %+v", s)
	}
}

func TestBrokenTasksDoNotStopTheOthers(t *testing.T) {
	t.Parallel()
	dataset := writeDataset(t, "good", "no-instruction", "broken-toml", "no-definition")
	for path, content := range map[string]*string{
		"no-instruction/instruction.md":        nil,
		"broken-toml/task.toml":                new("[x\n"),
		"no-definition/environment/Dockerfile": nil,
	} {
		full := filepath.Join(dataset, filepath.FromSlash(path))
		if content == nil {
			if err := os.Remove(full); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(full, []byte(*content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h := newHarness(t, dataset, fake.Config{Rules: []fake.Rule{grant("1")}})
	p := h.prepare(t)
	warnings := strings.Join(p.Warnings, "\n")
	for _, want := range []string{"no-instruction", "is missing instruction.md", "broken-toml", "at line 1"} {
		if !strings.Contains(warnings, want) {
			t.Errorf("warnings lack %q:\n%s", want, warnings)
		}
	}
	out, err := h.runner.Run(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if s := out.Result.Stats; s.NCompletedTrials != 2 || s.NErroredTrials != 1 {
		t.Errorf("stats %+v", s)
	}
}

// newInterrupted is a job of three tasks whose context ends while the second
// one's agent works.
func newInterrupted(t *testing.T) (*harness, context.Context) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	h := newHarness(t, writeDataset(t, "a", "b", "c"), fake.Config{Rules: []fake.Rule{
		fake.On("solve.sh", fake.Each(fake.Exit(0), func(ctx context.Context, _ *fake.Process) (int, error) {
			cancel()
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}, fake.Exit(0))),
		grant("1"),
	}})
	h.cfg.NConcurrentTrials = 1
	return h, ctx
}

func TestInterruptedJobGoesOn(t *testing.T) {
	t.Parallel()
	h, ctx := newInterrupted(t)
	out, err := h.runner.Run(ctx, h.prepare(t))
	if err != nil {
		t.Fatal(err)
	}
	if !out.Interrupted || out.Result.FinishedAt != nil || out.Progress.Pending != 1 || out.Result.Stats.NCancelledTrials != 1 {
		t.Errorf("outcome %+v, stats %+v", out, out.Result.Stats)
	}
	// The progress and the statistics of the end are one count.
	want := map[jobdir.Class]int{jobdir.ClassScored: 1, jobdir.ClassCancelled: 1}
	if !maps.Equal(out.Progress.Ended.Outcomes, want) || out.Progress.Ended.WithReward != out.Statistics.WithReward {
		t.Errorf("ended %+v, want %v", out.Progress.Ended, want)
	}
	if s := out.Statistics.Outcomes; s[jobdir.ClassScored] != 1 || s[jobdir.ClassCancelled] != 1 || s[jobdir.ClassPending] != 1 {
		t.Errorf("statistics %v", s)
	}
	data, err := os.ReadFile(filepath.Join(h.dir(), "result.json"))
	if err != nil || !strings.Contains(string(data), `"finished_at": null`) {
		t.Errorf("stored result: %v\n%s", err, data)
	}
	again := h.run(t)
	if again.Result.ID != out.Result.ID || again.Result.Stats.NCompletedTrials != 3 || h.backend.Count(fake.OpCreate) != 3 {
		t.Errorf("resumed: %+v after %d sandboxes", again.Result.Stats, h.backend.Count(fake.OpCreate))
	}
}

func TestDifferentConfigIsRefused(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "a"), fake.Config{Rules: []fake.Rule{grant("1")}})
	h.run(t)
	for name, change := range map[string]func(*jobdir.Config){
		"concurrency": func(c *jobdir.Config) { c.NConcurrentTrials = 9 },
		"agent":       func(c *jobdir.Config) { c.Agents = []jobdir.AgentConfig{{Name: new("nop")}} },
	} {
		cfg := h.cfg
		change(&cfg)
		_, err := job.Prepare(cfg, job.PrepareOptions{Now: time.Now(), Lookup: noVariables, Random: rand.IntN})
		if err == nil || !strings.Contains(err.Error(), "cannot be resumed with a different config") {
			t.Errorf("%s: %v", name, err)
		}
	}
	task := filepath.Join(*h.cfg.Datasets[0].Path, "a", "tests", "test.sh")
	if err := os.WriteFile(task, []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := job.Prepare(h.cfg, job.PrepareOptions{Now: time.Now(), Lookup: noVariables, Random: rand.IntN})
	if err == nil || !strings.Contains(err.Error(), "does not match the resolved job lock") {
		t.Errorf("changed task: %v", err)
	}
}

// runAndKill runs the job and kills it when two of its agents have started.
func (h *harness) runAndKill(t *testing.T, started <-chan struct{}) {
	t.Helper()
	kill := make(chan struct{})
	h.runner.Kill = kill
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := h.runner.Run(ctx, h.prepare(t))
		done <- err
	}()
	<-started
	<-started
	cancel()
	close(kill)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestKillEndsEverything(t *testing.T) {
	t.Parallel()
	started := make(chan struct{}, 8)
	h := newHarness(t, writeDataset(t, "a", "b"), fake.Config{Rules: []fake.Rule{
		fake.On("solve.sh", func(ctx context.Context, _ *fake.Process) (int, error) {
			started <- struct{}{}
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}),
	}})
	h.runAndKill(t, started)
	if live := h.backend.Live(); live != 0 {
		t.Errorf("%d sandboxes are left", live)
	}
}

func TestUnwritableDirectory(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "a"), fake.Config{})
	if err := os.WriteFile(filepath.Join(h.cfg.JobsDir, "the-job"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := job.Prepare(h.cfg, job.PrepareOptions{Now: time.Now(), Lookup: noVariables, Random: rand.IntN})
	if err == nil {
		_, err = h.runner.Run(t.Context(), h.prepare(t))
	}
	if err == nil {
		t.Error("a job directory that is a file gave no error")
	}
}

func TestManyConcurrentTrials(t *testing.T) { //nolint:paralleltest // it measures the process's heap
	names := make([]string, 50)
	for i := range names {
		names[i] = fmt.Sprintf("task-%02d", i)
	}
	h := newHarness(t, writeDataset(t, names...), fake.Config{
		Before: fake.FailEvery(37, errors.New("flaky infrastructure")),
		Rules:  []fake.Rule{fake.On("solve.sh", fake.Flood(1<<20)), grant("1")},
	})
	h.cfg.NAttempts, h.cfg.NConcurrentTrials, h.cfg.Retry.MaxRetries = 8, 200, 1
	h.runner.Trials.OutputLimit = 4 << 10
	out := h.run(t)
	if out.Result.Stats.NCompletedTrials != 400 || len(out.Records) != 400 {
		t.Errorf("%d trials ended, %d records; want 400", out.Result.Stats.NCompletedTrials, len(out.Records))
	}
	p := out.Progress
	sum := 0
	for _, class := range jobdir.Classes() {
		sum += p.Ended.Outcomes[class]
	}
	if sum != p.Ended.Trials || p.Ended.Trials != 400 {
		t.Errorf("progress does not add up: %+v", p)
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	if mem.HeapInuse > 512<<20 {
		t.Errorf("%d MiB of heap in use after 400 MiB of output", mem.HeapInuse>>20)
	}
}

func TestHostVariables(t *testing.T) {
	t.Parallel()
	dataset := writeDataset(t, "a")
	toml := "[environment.env]\nA = \"${SET}\"\nB = \"${UNSET:-x}\"\nC = \"${GIVEN}\"\n[verifier.env]\nD = \"${UNSET}\"\n[solution.env]\nE = \"${SET}\"\n"
	if err := os.WriteFile(filepath.Join(dataset, "a", "task.toml"), []byte(toml), 0o644); err != nil {
		t.Fatal(err)
	}
	h := newHarness(t, dataset, fake.Config{})
	h.cfg.Environment.Env = jobdir.EnvOf("C", "value")
	got := h.prepare(t).HostVariables(func(name string) (string, bool) { return "v", name == "SET" })
	want := []job.HostVariable{
		{Name: "SET", Phase: "environment", Task: "a", Set: true},
		{Name: "UNSET", Phase: "environment", Task: "a"},
		{Name: "UNSET", Phase: "verifier", Task: "a", Missing: true},
		{Name: "SET", Phase: "solution", Task: "a", Set: true},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}
