package trial_test

import (
	"testing"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/trial"
)

// A limit that leaves no time is reported where the trial would be held to it.
func TestCheckLimits(t *testing.T) {
	t.Parallel()
	const steps = "[[steps]]\nname = \"one\"\n[steps.agent]\ntimeout_sec = 5\n"
	for _, c := range []struct {
		name, toml string
		change     func(*jobdir.TrialConfig)
		want       string // before "which leaves"; empty for nothing
	}{
		{"defaults", "", nil, ""},
		{"agent", "[agent]\ntimeout_sec = 0\n", nil, "[agent].timeout_sec is 0"},
		{"agent overridden", "[agent]\ntimeout_sec = 0\n", func(c *jobdir.TrialConfig) { c.Agent.OverrideTimeoutSec = new(5.0) }, ""},
		{"an override of 0 is none", "[agent]\ntimeout_sec = -1\n", func(c *jobdir.TrialConfig) { c.Agent.OverrideTimeoutSec = new(0.0) }, "[agent].timeout_sec is -1"},
		{"verifier", "[verifier]\ntimeout_sec = -1\n", nil, "[verifier].timeout_sec is -1"},
		{"no verifier", "[verifier]\ntimeout_sec = -1\n", func(c *jobdir.TrialConfig) { c.Verifier.Disable = true }, ""},
		{"environment", "[environment]\nbuild_timeout_sec = 0\n", nil, "[environment].build_timeout_sec is 0"},
		{"the step's own", "[agent]\ntimeout_sec = 0\n" + steps, nil, ""},
		{"the task's for a step", "[agent]\ntimeout_sec = 0\n" + steps + "[[steps]]\nname = \"two\"\n", nil, `[agent].timeout_sec of step "two" is 0`},
		{"a multiplier is no task's", "[agent]\ntimeout_sec = 1\n", func(c *jobdir.TrialConfig) { c.TimeoutMultiplier = 0 }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			task, _, err := harbor.ParseConfig([]byte(c.toml))
			if err != nil {
				t.Fatal(err)
			}
			cfg := jobdir.TrialConfig{TimeoutMultiplier: 1}
			if c.change != nil {
				c.change(&cfg)
			}
			got := ""
			if err := trial.CheckLimits(&cfg, &task); err != nil {
				got = err.Error()
			}
			want := c.want
			if want != "" {
				want += ", which leaves no time: each trial would end at once"
			}
			if got != want {
				t.Errorf("error is %q, want %q", got, want)
			}
		})
	}
}
