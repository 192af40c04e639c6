package evaluation_test

import (
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/internal/evaluation"
	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/ownrunner"
)

// TestNeedsOf has the limits of the outcome mapping, section 11.2: what agent and verifier
// may take, and 900 seconds.
func TestNeedsOf(t *testing.T) {
	t.Parallel()
	const steps = "[agent]\ntimeout_sec = 10.0\n[verifier]\ntimeout_sec = 5000.0\n" +
		"[[steps]]\nname = \"one\"\n[[steps]]\nname = \"two\"\n[steps.agent]\ntimeout_sec = 20.0\n[steps.verifier]\ntimeout_sec = 30.0\n"
	for _, c := range []struct {
		name     string
		tasks    []string // their files
		config   func(*jobdir.Config)
		costs    []ownrunner.Cost
		backstop time.Duration
	}{
		{"no task", nil, nil, []ownrunner.Cost{}, seconds(3600 + 600 + 900)},
		{"a task that says nothing", []string{""}, nil, []ownrunner.Cost{{}}, seconds(3600 + 600 + 900)},
		{"a task that cannot be read", []string{"["}, nil, []ownrunner.Cost{{}}, seconds(3600 + 600 + 900)},
		{
			"one that cannot be read beside a short one", []string{"[agent]\ntimeout_sec = 1.0\n", "["}, nil,
			[]ownrunner.Cost{{}, {}}, seconds(3600 + 600 + 900),
		},
		{"the agent's time", []string{"[agent]\ntimeout_sec = 60.5\n"}, nil, []ownrunner.Cost{{}}, seconds(60.5 + 600 + 900)},
		{"the verifier's time", []string{"[verifier]\ntimeout_sec = 7200.0\n"}, nil, []ownrunner.Cost{{}}, seconds(3600 + 7200 + 900)},
		{
			"the longest of several", []string{"[agent]\ntimeout_sec = 60.0\n", "[agent]\ntimeout_sec = 10.0\n[verifier]\ntimeout_sec = 800.0\n"}, nil,
			[]ownrunner.Cost{{}, {}}, seconds(10 + 800 + 900),
		},
		{"steps one after the other", []string{steps}, nil, []ownrunner.Cost{{}}, seconds(10 + 600 + 20 + 30 + 900)},
		{
			"a multiplier of both, and not of the slack", []string{"[agent]\ntimeout_sec = 60.0\n"},
			func(cfg *jobdir.Config) { cfg.TimeoutMultiplier = 2 }, []ownrunner.Cost{{}}, seconds(120 + 1200 + 900),
		},
		{
			"multipliers of one each", []string{"[agent]\ntimeout_sec = 60.0\n"},
			func(cfg *jobdir.Config) {
				cfg.TimeoutMultiplier, cfg.AgentTimeoutMultiplier, cfg.VerifierTimeoutMultiplier = 7, new(3.0), new(0.5)
			},
			[]ownrunner.Cost{{}}, seconds(180 + 300 + 900),
		},
		{"a time beyond measure", []string{"[agent]\ntimeout_sec = 1e300\n"}, nil, []ownrunner.Cost{{}}, math.MaxInt64},
		{
			"costs", []string{"[environment]\ncpus = 4\nmemory_mb = 8192\n", "[environment]\ncpus = 1\n"}, nil,
			[]ownrunner.Cost{{CPUs: 4, MemoryMiB: 8192}, {CPUs: 1}}, seconds(3600 + 600 + 900),
		},
		{
			"a cost beyond measure", []string{"[environment]\nmemory_mb = 9223372036854775807\n"}, nil,
			[]ownrunner.Cost{{MemoryMiB: math.MaxInt64}}, seconds(3600 + 600 + 900),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var tasks []evaluation.Task
			for _, text := range c.tasks {
				dir := t.TempDir()
				jobtest.Write(t, filepath.Join(dir, "task.toml"), []byte(text))
				for _, name := range []string{"instruction.md", "tests/test.sh", "steps/one/instruction.md", "steps/two/instruction.md", "steps/one/tests/test.sh", "steps/two/tests/test.sh", "environment/Dockerfile"} {
					jobtest.Write(t, filepath.Join(dir, filepath.FromSlash(name)), []byte("FROM x\n"))
				}
				tasks = append(tasks, evaluation.Task{Name: text, Dir: dir})
			}
			cfg := jobdir.NewConfig(time.Now())
			if c.config != nil {
				c.config(&cfg)
			}
			if diff := cmp.Diff(evaluation.Needs{Costs: c.costs, Backstop: c.backstop}, evaluation.NeedsOf(tasks, cfg)); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
