package job_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// Nothing but a configuration and a backend is needed; what was left out is this
// process, its clock and an empty environment.
func TestRunWithDefaults(t *testing.T) {
	t.Parallel()
	set := writeDataset(t, "a", "b")
	toml := "[environment.env]\nTOKEN = \"${PROCTOR_TEST_UNSET:-fallback}\"\n"
	if err := os.WriteFile(filepath.Join(set, "a", "task.toml"), []byte(toml), 0o644); err != nil {
		t.Fatal(err)
	}
	backend := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{grant("1")}})
	defer fake.Verify(t, backend)
	cfg := jobdir.NewConfig(time.Now())
	cfg.JobsDir, cfg.Datasets = t.TempDir(), []jobdir.DatasetConfig{{Path: &set}}
	begin := time.Now()
	out, err := job.Run(t.Context(), cfg, agents.All(), backend)
	if err != nil {
		t.Fatal(err)
	}
	if m := out.Progress.Metrics; len(m) != 1 || m[0].Value != "1.0" || m[0].NScored != 2 {
		t.Errorf("metrics %+v, want a mean of 1.0 over 2 trials", m)
	}
	self, err := procid.Self()
	if err != nil {
		t.Fatal(err)
	}
	var creates int
	for _, c := range backend.Calls() {
		if c.Op != fake.OpCreate {
			continue
		}
		creates++
		if c.Spec.Labels.Owner != self {
			t.Errorf("a sandbox belongs to %v, want this process %v", c.Spec.Labels.Owner, self)
		}
		if strings.HasPrefix(c.Spec.Labels.Trial, "a__") && !slices.Contains(c.Spec.Env, "TOKEN=fallback") {
			t.Errorf("variables %v, want the template's default", c.Spec.Env)
		}
	}
	if creates != 2 {
		t.Errorf("%d sandboxes, want 2", creates)
	}
	stored, err := job.StoredConfig(cfg.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if name, ok := stored.Environment.Backend(); !ok || name != backend.Name() {
		t.Errorf("the job is recorded as run in %q, it ran in %q", name, backend.Name())
	}
	j, err := journal.Load(cfg.Dir())
	runs := journal.NewState(j).Runs
	if err != nil || len(runs) != 1 || runs[0].Start.Owner == nil || *runs[0].Start.Owner != self {
		t.Fatalf("journal %+v, %v: want one run of this process", runs, err)
	}
	if at := runs[0].Start.Time; at.Before(begin.Add(-time.Second)) || at.After(time.Now().Add(time.Second)) {
		t.Errorf("the run began at %s", at)
	}

	again, err := job.Run(t.Context(), cfg, agents.All(), backend)
	if err != nil || len(again.Records) != 2 || backend.Count(fake.OpCreate) != 2 {
		t.Errorf("run again: %v, %d sandboxes, want the finished trials kept", err, backend.Count(fake.OpCreate))
	}
}

func TestRunRefusesWhatCannotRun(t *testing.T) {
	t.Parallel()
	cfg := jobdir.NewConfig(time.Now())
	cfg.JobsDir = t.TempDir()
	if _, err := job.Run(t.Context(), cfg, agents.All(), job.NoSandboxes{}); err == nil {
		t.Error("a job without tasks ran")
	}
}
