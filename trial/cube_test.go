package trial_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/value"
)

func scripted(t *testing.T, b *bench, actions string) {
	t.Helper()
	v, err := value.DecodeText(actions)
	if err != nil {
		t.Fatal(err)
	}
	kwargs := value.NewObject(1)
	kwargs.Set("actions", v)
	b.cfg.Agent.Name, b.cfg.Agent.Kwargs = new("scripted"), kwargs
}

func TestScriptedTrial(t *testing.T) {
	t.Parallel()
	b := newBench(t, goodTask(), fake.Config{Rules: []fake.Rule{rewardRule("reward.txt", "0.5\n")}})
	scripted(t, b, `[{"name": "bash", "arguments": {"command": "true"}}, {"name": "final_step"}]`)
	res := b.run(t)
	if got := rewardsText(res); got != "{'reward': 0.5}" || res.ExceptionInfo != nil {
		t.Errorf("rewards %s, exception %v", got, res.ExceptionInfo)
	}
	if res.EnvironmentSetup == nil || res.AgentSetup == nil || res.AgentExecution == nil || res.Verifier == nil {
		t.Error("a phase has no times")
	}
	steps, err := os.ReadFile(filepath.Join(b.dir, "agent", "steps.jsonl"))
	if err != nil || strings.Count(string(steps), "\n") != 2 {
		t.Errorf("steps: %v\n%s", err, steps)
	}
	if n := b.backend.Live(); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
}

func TestScriptedFailures(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, actions, want string }{
		{"no list", `{}`, "ValueError"},
		{"no action", `[{"name": 3}]`, "ValueError"},
		{"no reward", `[]`, "RewardFileNotFoundError"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, goodTask(), fake.Config{})
			scripted(t, b, c.actions)
			if got := exceptionType(b.run(t)); got != c.want {
				t.Errorf("exception %q, want %q", got, c.want)
			}
			if n := b.backend.Live(); n != 0 {
				t.Errorf("%d sandboxes are left", n)
			}
		})
	}
}
