package job_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox/fake"
)

func TestConfigChanges(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		edit func(*jobdir.Config)
		want []string
	}{
		{"nothing", func(*jobdir.Config) {}, nil},
		{"name and debug are no difference", func(c *jobdir.Config) { c.JobName, c.Debug = "other", true }, nil},
		{"concurrency", func(c *jobdir.Config) { c.NConcurrentTrials = 8 }, []string{"n_concurrent_trials: 4 → 8 (does not change results)"}},
		{"retries", func(c *jobdir.Config) { c.Retry.MaxRetries = 2 }, []string{"retry.max_retries: 0 → 2 (does not change results)"}},
		{"model", func(c *jobdir.Config) { c.Agents[0].ModelName = new("m") }, []string{`agents[0].model_name: null → "m" (changes results)`}},
		{"one agent more", func(c *jobdir.Config) { c.Agents = append(c.Agents, jobdir.AgentConfig{Name: new("nop")}) }, []string{"agents[1]: (absent) → "}},
		{"timeout and attempts", func(c *jobdir.Config) { c.TimeoutMultiplier, c.NAttempts = 2, 3 }, []string{
			"n_attempts: 1 → 3 (changes results)", "timeout_multiplier: 1.0 → 2.0 (changes results)",
		}},
		{"a secret", func(c *jobdir.Config) { c.Agents[0].Env = jobdir.EnvOf("API_KEY", "sk-secret-secret") }, []string{
			`agents[0].env.API_KEY: (absent) → "sk-s****ret" (changes results)`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			old, now := jobdir.NewConfig(time.Time{}), jobdir.NewConfig(time.Time{})
			tt.edit(&now)
			got := old.Changes(now, noVariables)
			if len(got) != len(tt.want) {
				t.Fatalf("changes %v, want %q", got, tt.want)
			}
			for i, c := range got {
				if !strings.HasPrefix(c.String(), tt.want[i]) {
					t.Errorf("change %q, want %q", c, tt.want[i])
				}
			}
			if old.Equal(now, noVariables) != (len(got) == 0) {
				t.Errorf("equal %v with changes %v", old.Equal(now, noVariables), got)
			}
		})
	}
}

// TestRunAgainWithOtherSettings: refused with the reference's words and the
// differences; what does not change results can be accepted.
func TestRunAgainWithOtherSettings(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "a", "b"), fake.Config{Rules: []fake.Rule{grant("1")}})
	h.run(t)
	options := job.PrepareOptions{Now: time.Now(), Lookup: noVariables, Random: func(int) int { return 0 }}
	h.cfg.NConcurrentTrials, h.cfg.Retry.MaxRetries = 2, 1
	_, err := job.Prepare(h.cfg, options)
	changed, ok := errors.AsType[*jobdir.ChangedError](err)
	if !ok || !changed.Harmless() || len(changed.Changes) != 2 {
		t.Fatalf("other concurrency gives %v", err)
	}
	first, rest, _ := strings.Cut(err.Error(), "\n")
	if want := "Job directory " + h.dir() + " already exists and cannot be resumed with a different config."; first != want || !strings.Contains(rest, "4 → 2 (does not change results)") {
		t.Errorf("the error is %q, want first %q", err, want)
	}
	options.AcceptHarmless = true
	p, err := job.Prepare(h.cfg, options)
	if err != nil || len(p.Remaining) != 0 {
		t.Fatalf("accepted: %v, remaining %v", err, p.Remaining)
	}
	if out, err := h.runner.Run(t.Context(), p); err != nil || out.Result.Stats.NCompletedTrials != 2 {
		t.Errorf("accepted: %v", err)
	}
	checkWhole(t, h.dir(), 2)

	h.cfg.TimeoutMultiplier = 3
	if _, err = job.Prepare(h.cfg, options); err == nil || !strings.Contains(err.Error(), "timeout_multiplier: 1.0 → 3.0 (changes results)") {
		t.Errorf("another timeout gives %v", err)
	}
	h.cfg.TimeoutMultiplier = 1
	script := filepath.Join(*h.cfg.Datasets[0].Path, "b", "tests", "test.sh")
	if err := os.WriteFile(script, []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = job.Prepare(h.cfg, options)
	if err == nil || !strings.Contains(err.Error(), "lock.json that does not match the resolved job lock.\n  task \"b\": task.digest: \"sha256:") {
		t.Errorf("another task content gives %v", err)
	}
	if err := os.RemoveAll(filepath.Dir(filepath.Dir(script))); err != nil {
		t.Fatal(err)
	}
	_, err = job.Prepare(h.cfg, options)
	if !errors.Is(err, job.ErrForeignTrial) || !strings.Contains(err.Error(), "task b → (absent)") {
		t.Errorf("a task less gives %v", err)
	}
}
