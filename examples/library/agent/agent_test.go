package agent

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// run runs a job of one agent on one task and returns its summary.
func run(t *testing.T, backend *fake.Backend, name, setting, text string) *job.Summary {
	t.Helper()
	task := filepath.Join(t.TempDir(), "hello")
	for file, content := range map[string]string{
		"task.toml": "", "instruction.md": "Say hello.", "environment/Dockerfile": "FROM debian:12\n",
		"tests/test.sh": "#!/bin/bash\n", "solution/solve.sh": "#!/bin/bash\n",
	} {
		path := filepath.Join(task, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cfg := jobdir.NewConfig(time.Now())
	cfg.JobsDir, cfg.Tasks = t.TempDir(), []jobdir.TaskConfig{{Path: &task}}
	cfg.Agents[0].Name, cfg.Agents[0].Kwargs = &name, &value.Object{}
	cfg.Agents[0].Kwargs.Set(setting, value.Str(text))
	if err := job.CheckAgents(cfg.Agents, Registry(), false); err != nil {
		t.Fatal(err)
	}
	prepared, err := job.Prepare(cfg, job.PrepareOptions{Random: rand.New(rand.NewPCG(1, 2)).IntN})
	if err != nil {
		t.Fatal(err)
	}
	runner := job.Runner{Trials: trial.Runner{Backend: backend, Agents: Registry()}}
	done, err := runner.Run(t.Context(), prepared)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range done.Records {
		if r.ExceptionType != "" {
			t.Errorf("%s ended with %s", r.TrialName, r.ExceptionType)
		}
	}
	return done
}

func newBackend(t *testing.T) *fake.Backend {
	t.Helper()
	b := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{
		fake.On("/tests/test.sh", fake.Write("/logs/verifier/reward.txt", "1\n")),
		fake.On("echo hello", fake.Print("hello\n")),
	}})
	t.Cleanup(func() { fake.Verify(t, b) })
	return b
}

func TestNote(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	done := run(t, b, "note", "path", "/app/note.txt")
	if m := done.Progress.Metrics; len(m) != 1 || m[0].Value != "1.0" {
		t.Errorf("metrics %+v", m)
	}
	uploaded := func(c fake.Call) bool { return c.Op == fake.OpUpload && strings.HasPrefix(c.Path, "/app") }
	if !slices.ContainsFunc(b.Calls(), uploaded) {
		t.Error("the agent wrote nothing")
	}
}

func TestSingle(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	run(t, b, "single", "command", "echo hello")
	ran := func(c fake.Call) bool { return c.Op == fake.OpExec && slices.Contains(c.Command.Argv, "echo hello") }
	if !slices.ContainsFunc(b.Calls(), ran) {
		t.Error("the agent's command was not run")
	}
}

func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	name := "note"
	cfg := jobdir.NewAgentConfig()
	cfg.Name = &name
	if err := job.CheckAgents([]jobdir.AgentConfig{cfg}, Registry(), false); err == nil {
		t.Error("an agent without its path is fine")
	}
}
