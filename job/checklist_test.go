package job_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

// The tests of this file are the rows of the acceptance checklist of the Harbor
// job format (section 13) that can be seen without real sandboxes.
// docs/compatibility.md lists all rows.

// stored reads a job's result.json as a document.
func stored(t testing.TB, dir string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, scan.ResultFile))
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return doc
}

// at follows keys into a document.
func at(t testing.TB, doc any, keys ...string) any {
	t.Helper()
	for _, k := range keys {
		m, ok := doc.(map[string]any)
		if !ok {
			t.Fatalf("no %q in %v", k, doc)
		}
		doc = m[k]
	}
	return doc
}

// storedTrials reads the results of a job's trials.
func storedTrials(t testing.TB, dir string) []*jobdir.TrialResult {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*", scan.ResultFile))
	if err != nil {
		t.Fatal(err)
	}
	var all []*jobdir.TrialResult
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := jobdir.ParseTrialResult(data)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, &r)
	}
	return all
}

func onlyTrial(t testing.TB, dir string) *jobdir.TrialResult {
	t.Helper()
	all := storedTrials(t, dir)
	if len(all) != 1 {
		t.Fatalf("%d trials, want 1", len(all))
	}
	return all[0]
}

func exceptionOf(r *jobdir.TrialResult) string {
	if r.ExceptionInfo == nil {
		return ""
	}
	return r.ExceptionInfo.Type
}

// pythonError is an error that is recorded under a Python name.
type pythonError string

func (e pythonError) Error() string     { return "from the test" }
func (e pythonError) ErrorType() string { return string(e) }

func TestJobsRow02OrderOfThePlan(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "a", "b"), fake.Config{Rules: []fake.Rule{
		fake.On("solve.sh", fake.Each(fake.Sleep(80*time.Millisecond), fake.Sleep(40*time.Millisecond), fake.Exit(0))),
		grant("1"),
	}})
	h.cfg.Agents = namedAgents("oracle", "nop")
	h.cfg.NAttempts, h.cfg.NConcurrentTrials = 2, 8
	p := h.prepare(t)
	var planned []string
	names := map[string]string{} // of the trial by its place in the plan
	for i, c := range p.Trials {
		planned = append(planned, filepath.Base(*c.Task.Path)+" "+*c.Agent.Name)
		names[c.TrialName] = string(rune('0' + i))
	}
	if want := []string{"a oracle", "a nop", "b oracle", "b nop", "a oracle", "a nop", "b oracle", "b nop"}; !slices.Equal(planned, want) {
		t.Fatalf("plan %q, want %q", planned, want)
	}
	if _, err := h.runner.Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(h.dir(), scan.ResultFile))
	if err != nil {
		t.Fatal(err)
	}
	r, err := jobdir.ParseResult(data)
	if err != nil {
		t.Fatal(err)
	}
	var groups []string
	for key := range r.Stats.Evals.All() {
		groups = append(groups, key)
	}
	if !slices.Equal(groups, []string{"oracle__set", "nop__set"}) {
		t.Errorf("groups %q follow another order than the plan", groups)
	}
	doc := stored(t, h.dir())
	for group, want := range map[string]string{"oracle__set": "0246", "nop__set": "1357"} {
		order := ""
		for _, name := range at(t, doc, "stats", "evals", group, "reward_stats", "reward", "1.0").([]any) {
			order += names[name.(string)]
		}
		if order != want {
			t.Errorf("%s: trials in order %s, want %s", group, order, want)
		}
	}
}

func TestJobsRow03TrialNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 40)
	h := newHarness(t, writeDataset(t, long, "x-", "y_-_"), fake.Config{Rules: []fake.Rule{grant("1")}})
	suffix := `__[23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz]{7}$`
	for i, want := range []string{"^a{32}" + suffix, "^x" + suffix, "^y" + suffix} {
		if name := h.prepare(t).Trials[i].TrialName; !regexp.MustCompile(want).MatchString(name) {
			t.Errorf("trial is called %q, want %s", name, want)
		}
	}
}

func TestJobsRow04LiveResult(t *testing.T) {
	t.Parallel()
	dataset := writeDataset(t, "a", "b", "c")
	synctest.Test(t, func(t *testing.T) {
		var h *harness
		var seen atomic.Int32
		look := func(ctx context.Context, _ *fake.Process) (int, error) {
			time.Sleep(time.Minute) // whoever writes has written by then
			doc := stored(t, h.dir())
			if text := at(t, doc, "updated_at").(string); !strings.HasSuffix(text, "Z") {
				t.Errorf("updated_at is %q while the job runs", text)
			}
			n := func(key string) float64 { return at(t, doc, "stats", key).(float64) }
			if n("n_running_trials") != 1 || n("n_pending_trials")+n("n_completed_trials") != 2 || at(t, doc, "finished_at") != nil {
				t.Errorf("while a trial runs: %v", doc["stats"])
			}
			seen.Add(1)
			return 0, nil
		}
		h = newHarness(t, dataset, fake.Config{Rules: []fake.Rule{fake.On("solve.sh", look), grant("1")}})
		h.cfg.NConcurrentTrials = 1
		h.run(t)
		if seen.Load() != 3 {
			t.Errorf("looked %d times, want 3", seen.Load())
		}
		doc := stored(t, h.dir())
		if text := at(t, doc, "updated_at").(string); strings.HasSuffix(text, "Z") || text != at(t, doc, "finished_at") {
			t.Errorf("updated_at is %q at the end, finished_at %v", text, at(t, doc, "finished_at"))
		}
	})
}

func TestJobsRow05NoReward(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "silent"), fake.Config{})
	h.run(t)
	if got := exceptionOf(onlyTrial(t, h.dir())); got != "RewardFileNotFoundError" {
		t.Errorf("exception %q", got)
	}
	doc := stored(t, h.dir())
	eval := at(t, doc, "stats", "evals", "oracle__set")
	mean := at(t, eval, "metrics").([]any)[0]
	if at(t, doc, "stats", "n_errored_trials") != 1.0 || at(t, eval, "n_trials") != 0.0 || at(t, mean, "mean") != 0.0 {
		t.Errorf("stats %v", doc["stats"])
	}
}

func TestJobsRow06AgentTimeout(t *testing.T) {
	t.Parallel()
	dataset := writeDataset(t, "slow")
	putFile(t, filepath.Join(dataset, "slow", "task.toml"), "[agent]\ntimeout_sec = 5.0\n")
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, dataset, fake.Config{Rules: []fake.Rule{fake.On("solve.sh", fake.Hang()), grant("1")}})
		h.cfg.Retry.MaxRetries = 2
		h.run(t)
		r := onlyTrial(t, h.dir())
		if exceptionOf(r) != "AgentTimeoutError" || r.ExceptionInfo.Message != "Agent execution timed out after 5.0 seconds" {
			t.Errorf("exception %+v", r.ExceptionInfo)
		}
		if r.VerifierResult == nil || value.Repr(r.VerifierResult.Rewards.Object()) != "{'reward': 1.0}" {
			t.Errorf("rewards %+v", r.VerifierResult)
		}
		if n := at(t, stored(t, h.dir()), "stats", "n_retries"); n != 0.0 {
			t.Errorf("%v retries", n)
		}
	})
}

func putFile(t testing.TB, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func TestJobsRow07Retries(t *testing.T) {
	t.Parallel()
	dataset := writeDataset(t, "flaky")
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, dataset, fake.Config{Rules: []fake.Rule{
			fake.On("solve.sh", fake.Each(fake.Fail(pythonError("ValueError")), fake.Fail(pythonError("ValueError")), fake.Exit(0))),
			grant("1"),
		}})
		h.runner.Sleep = nil // the real waits, in the bubble's time
		h.cfg.Retry.MaxRetries = 2
		began := time.Now()
		h.run(t)
		if waited := time.Since(began); waited < 2*time.Second || waited > 3*time.Second {
			t.Errorf("two retries took %s, want a second each", waited)
		}
		r := onlyTrial(t, h.dir()) // one directory, one name
		if exceptionOf(r) != "" {
			t.Errorf("exception %+v", r.ExceptionInfo)
		}
		if _, err := os.Stat(filepath.Join(h.dir(), r.TrialName, "exception.txt")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("exception.txt of an earlier attempt: %v", err)
		}
		stats := at(t, stored(t, h.dir()), "stats")
		eval := at(t, stats, "evals", "oracle__set")
		if at(t, stats, "n_retries") != 2.0 || at(t, stats, "n_errored_trials") != 0.0 || len(at(t, eval, "exception_stats").(map[string]any)) != 0 {
			t.Errorf("stats %v", stats)
		}
	})
}

func TestJobsRow08AgentExit(t *testing.T) {
	t.Parallel()
	for retries, want := range []string{"NonZeroAgentExitCodeError", ""} {
		h := newHarness(t, writeDataset(t, "a"), fake.Config{Rules: []fake.Rule{
			fake.On("the-agent", fake.Each(fake.Exit(3), fake.Exit(0))), grant("1"),
		}})
		kwargs := value.NewObject(0)
		kwargs.Set("run", value.Str("the-agent"))
		h.cfg.Agents = []jobdir.AgentConfig{{Name: new("command"), Kwargs: kwargs}}
		h.cfg.Retry.MaxRetries = retries
		h.run(t)
		r := onlyTrial(t, h.dir())
		if exceptionOf(r) != want || r.VerifierResult == nil {
			t.Errorf("%d retries: exception %q and rewards %v, want %q and verified", retries, exceptionOf(r), r.VerifierResult, want)
		}
	}
}

func TestJobsRow09EnvironmentFails(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "a"), fake.Config{Before: fake.FailAt(fake.OpCreate, 0, nil)})
	h.run(t)
	r := onlyTrial(t, h.dir())
	if r.ExceptionInfo == nil || r.EnvironmentSetup == nil || r.AgentSetup != nil || r.AgentExecution != nil || r.Verifier != nil || r.AgentResult != nil {
		t.Errorf("result %+v", r)
	}
	text, err := os.ReadFile(filepath.Join(h.dir(), r.TrialName, "exception.txt"))
	if err != nil || string(text) != r.ExceptionInfo.Traceback {
		t.Errorf("exception.txt is %q, %v; want the traceback %q", text, err, r.ExceptionInfo.Traceback)
	}
}

func TestJobsRow10RewardFiles(t *testing.T) {
	t.Parallel()
	put := func(name, text string) fake.Handler { return fake.Write("/logs/verifier/"+name, text) }
	for _, c := range []struct {
		name            string
		does            fake.Handler
		rewards, raised string
	}{
		{"list", put("reward.json", "[1]"), "", "ValidationError"},
		{"null", put("reward.json", "null"), "null", ""},
		{"converted", put("reward.json", `{"a":"0.5","b":true}`), "{'a': 0.5, 'b': 1.0}", ""},
		{"both", fake.InOrder(put("reward.txt", "0"), put("reward.json", `{"reward": 1.0}`)), "{'reward': 1.0}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, writeDataset(t, "a"), fake.Config{Rules: []fake.Rule{fake.On("/tests/test.sh", c.does)}})
			h.run(t)
			r := onlyTrial(t, h.dir())
			got := ""
			switch {
			case r.VerifierResult == nil:
			case r.VerifierResult.Rewards == nil:
				got = "null"
			default:
				got = value.Repr(r.VerifierResult.Rewards.Object())
			}
			if got != c.rewards || exceptionOf(r) != c.raised {
				t.Errorf("rewards %s and exception %q, want %s and %q", got, exceptionOf(r), c.rewards, c.raised)
			}
		})
	}
}

func TestJobsRow11NaN(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "a"), fake.Config{Rules: []fake.Rule{grant("nan")}})
	h.run(t)
	eval := at(t, stored(t, h.dir()), "stats", "evals", "oracle__set")
	if mean, ok := at(t, eval, "metrics").([]any)[0].(map[string]any)["mean"]; !ok || mean != nil {
		t.Errorf("mean is %v, want null", mean)
	}
	if names := at(t, eval, "reward_stats", "reward", "nan"); len(names.([]any)) != 1 {
		t.Errorf("reward_stats %v", at(t, eval, "reward_stats"))
	}
	data, err := os.ReadFile(filepath.Join(h.dir(), onlyTrial(t, h.dir()).TrialName, scan.ResultFile))
	if err != nil || !strings.Contains(string(data), `"reward": null`) {
		t.Errorf("the trial's result.json has no null: %v", err)
	}
	resumed, err := job.PrepareResume(h.dir(), job.ResumeOptions{PrepareOptions: sourceOptions(t)})
	if err != nil || len(resumed.Remaining) != 0 {
		t.Fatalf("%v: the job cannot be resumed", err)
	}
	rescored, err := score.Rescore(t.Context(), h.dir(), score.RescoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diffs := rescored.Check(); len(diffs) > 0 {
		t.Errorf("the job cannot be viewed: %v", diffs)
	}
}
