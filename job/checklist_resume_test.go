package job_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/value"
)

func TestJobsRow12Cancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stop := func(c context.Context, _ *fake.Process) (int, error) {
		cancel()
		<-c.Done()
		return 0, context.Cause(c)
	}
	h := newHarness(t, writeDataset(t, "a", "b", "c"), fake.Config{Rules: []fake.Rule{
		fake.On("solve.sh", fake.Each(fake.Exit(0), stop, fake.Exit(0))), grant("1"),
	}})
	h.cfg.NConcurrentTrials = 1
	out, err := h.runner.Run(ctx, h.prepare(t))
	if err != nil || !out.Interrupted {
		t.Fatalf("%v, interrupted %v", err, out.Interrupted)
	}
	before := stored(t, h.dir())
	stats := before["stats"]
	if at(t, before, "finished_at") != nil || at(t, stats, "n_cancelled_trials") != 1.0 || at(t, stats, "n_pending_trials") != 1.0 {
		t.Errorf("stats %v", before)
	}
	kinds := map[string]string{}
	for _, r := range storedTrials(t, h.dir()) {
		kinds[r.TaskName] = exceptionOf(r)
	}
	if len(kinds) != 2 || kinds["a"] != "" || kinds["b"] != "CancelledError" {
		t.Errorf("trials %v", kinds)
	}

	resumed, err := job.PrepareResume(h.dir(), job.ResumeOptions{PrepareOptions: sourceOptions(t)})
	if err != nil {
		t.Fatal(err)
	}
	if len(resumed.Existing) != 1 || len(resumed.Remaining) != 2 {
		t.Errorf("%d kept and %d to run, want 1 and 2", len(resumed.Existing), len(resumed.Remaining))
	}
	if _, err := h.runner.Run(t.Context(), resumed.Prepared); err != nil {
		t.Fatal(err)
	}
	after := stored(t, h.dir())
	if after["id"] != before["id"] || after["started_at"] != before["started_at"] || after["finished_at"] == nil {
		t.Errorf("identity %v and start %v became %v and %v", before["id"], before["started_at"], after["id"], after["started_at"])
	}
	if at(t, after, "stats", "n_completed_trials") != 3.0 || at(t, after, "stats", "n_errored_trials") != 0.0 {
		t.Errorf("stats %v", after["stats"])
	}
}

func TestJobsRow13ChangedBeforeResume(t *testing.T) {
	t.Parallel()
	const (
		otherConfig = "already exists and cannot be resumed with a different config."
		otherLock   = "already has a lock.json that does not match the resolved job lock."
	)
	for _, c := range []struct {
		name   string
		change func(t *testing.T, h *harness, dataset string)
		want   string
	}{
		{"nothing", func(*testing.T, *harness, string) {}, ""},
		{"a task file", func(t *testing.T, _ *harness, set string) {
			putFile(t, filepath.Join(set, "a", "tests", "test.sh"), "other")
		}, otherLock},
		{"-n", func(_ *testing.T, h *harness, _ string) { h.cfg.NConcurrentTrials++ }, otherConfig},
		{"an agent", func(_ *testing.T, h *harness, _ string) { h.cfg.Agents = namedAgents("nop") }, otherConfig},
		{"debug", func(_ *testing.T, h *harness, _ string) { h.cfg.Debug = true }, ""},
		{"the name in the file", func(t *testing.T, h *harness, _ string) {
			path := filepath.Join(h.dir(), scan.ConfigFile)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			putFile(t, path, strings.Replace(string(data), `"job_name": "the-job"`, `"job_name": "another"`, 1))
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dataset := writeDataset(t, "a")
			h := newHarness(t, dataset, fake.Config{Rules: []fake.Rule{grant("1")}})
			h.run(t)
			c.change(t, h, dataset)
			_, err := job.Prepare(h.cfg, sourceOptions(t))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestJobsRow14StrayDirectory: what Harbor deletes, proctor moves out of the
// job's directory.
func TestJobsRow14StrayDirectory(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "a"), fake.Config{Rules: []fake.Rule{grant("1")}})
	h.run(t)
	putFile(t, filepath.Join(h.dir(), "stray", "file"), "x")
	resumed, err := job.PrepareResume(h.dir(), job.ResumeOptions{PrepareOptions: sourceOptions(t)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.runner.Run(t.Context(), resumed.Prepared); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(h.dir(), "stray")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory without a result is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(resumed.OrphansDir, "stray", "file")); err != nil {
		t.Error(err)
	}
}

// stepTask makes a dataset with one task of two steps.
// first is what task.toml says of the first one's verifier.
func stepTask(t *testing.T, first string) string {
	t.Helper()
	dataset := writeDataset(t, "steps")
	dir := filepath.Join(dataset, "steps")
	putFile(t, filepath.Join(dir, "task.toml"), "[[steps]]\nname = \"one\"\n[steps.verifier]\n"+first+"\n[[steps]]\nname = \"two\"\n")
	for _, step := range []string{"one", "two"} {
		putFile(t, filepath.Join(dir, "steps", step, "instruction.md"), step)
		putFile(t, filepath.Join(dir, "steps", step, "tests", "test.sh"), "")
		putFile(t, filepath.Join(dir, "steps", step, "solution", "solve.sh"), "")
	}
	return dataset
}

func TestJobsRow15Steps(t *testing.T) {
	t.Parallel()
	reward := func(text string) fake.Handler { return fake.Write("/logs/verifier/reward.txt", text) }
	for _, c := range []struct {
		name          string
		first         fake.Handler
		limit         string
		reward, error string
	}{
		{"mean", reward("1"), "", "{'reward': 0.5}", ""},
		{"verifier timeout", fake.Hang(), "timeout_sec = 0.05", "", "TimeoutError"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, stepTask(t, c.limit), fake.Config{Rules: []fake.Rule{fake.On("/tests/test.sh", fake.Each(c.first, reward("0")))}})
			h.run(t)
			r := onlyTrial(t, h.dir())
			if r.ExceptionInfo != nil || r.AgentExecution != nil || r.Verifier != nil {
				t.Errorf("the trial itself has %+v, %+v, %+v", r.ExceptionInfo, r.AgentExecution, r.Verifier)
			}
			got := ""
			if r.VerifierResult != nil && r.VerifierResult.Rewards != nil {
				got = value.Repr(r.VerifierResult.Rewards.Object())
			}
			if got != c.reward {
				t.Errorf("rewards %q, want %q", got, c.reward)
			}
			if e := r.StepResults[0].ExceptionInfo; (e == nil) != (c.error == "") || e != nil && (e.Type != c.error || e.Message != "") {
				t.Errorf("the step has %+v, want %q", e, c.error)
			}
			dir := filepath.Join(h.dir(), r.TrialName)
			for _, name := range []string{"agent", "verifier", "artifacts"} {
				if _, err := os.Stat(filepath.Join(dir, "steps", "one", name)); err != nil {
					t.Error(err)
				}
				if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s is left at the top: %v", name, err)
				}
			}
			if n := at(t, stored(t, h.dir()), "stats", "n_errored_trials"); n != 0.0 {
				t.Errorf("%v errored trials; a step's error is not the trial's", n)
			}
		})
	}
}

func TestJobsRow17Secrets(t *testing.T) {
	t.Parallel()
	const secret = "sk-very-secret-value-0123456789"
	h := newHarness(t, writeDataset(t, "a"), fake.Config{Rules: []fake.Rule{grant("1")}})
	for _, env := range []*jobdir.Env{&h.cfg.Agents[0].Env, &h.cfg.Environment.Env, &h.cfg.Verifier.Env} {
		env.Set("API_KEY", secret)
	}
	p, err := job.Prepare(h.cfg, func() job.PrepareOptions {
		o := sourceOptions(t)
		o.Invocation = []string{"proctor", "run", "--ae", "API_KEY=" + secret, "--ve=API_KEY=" + secret}
		return o
	}())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.runner.Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	files := 0
	err = filepath.WalkDir(h.dir(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), secret) {
			t.Errorf("%s holds the secret", path)
		}
		return err
	})
	if err != nil || files < 6 {
		t.Errorf("%d files, %v", files, err)
	}
}

func TestJobsRow19PassAtK(t *testing.T) {
	t.Parallel()
	for attempts, want := range map[int][]string{1: nil, 2: {"2"}, 5: {"2", "4", "5"}, 10: {"2", "4", "5", "8", "10"}} {
		h := newHarness(t, writeDataset(t, "a", "b"), fake.Config{Rules: []fake.Rule{grant("1")}})
		h.cfg.NAttempts = attempts
		h.run(t)
		got := at(t, stored(t, h.dir()), "stats", "evals", "oracle__set", "pass_at_k").(map[string]any)
		if len(got) != len(want) {
			t.Errorf("%d attempts: pass@k %v, want %v", attempts, got, want)
		}
		for _, k := range want {
			if got[k] != 1.0 {
				t.Errorf("%d attempts: pass@%s is %v", attempts, k, got[k])
			}
		}
	}
}

func TestJobsRow20DatasetWithUnderscores(t *testing.T) {
	t.Parallel()
	dataset := writeDataset(t, "t")
	odd := filepath.Join(filepath.Dir(dataset), "a__b")
	if err := os.Rename(dataset, odd); err != nil {
		t.Fatal(err)
	}
	h := newHarness(t, odd, fake.Config{Rules: []fake.Rule{grant("1")}})
	h.run(t)
	eval := at(t, stored(t, h.dir()), "stats", "evals", "oracle__a__b")
	if eval == nil || len(at(t, eval, "metrics").([]any)) != 0 || at(t, eval, "n_trials") != 1.0 {
		t.Errorf("the group is %v", eval)
	}
}
