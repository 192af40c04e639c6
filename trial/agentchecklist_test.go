package trial_test

import (
	"strings"
	"testing"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// TestAgentChecklist has rows of the acceptance checklist of Harbor's agents that a trial
// shows; docs/compatibility.md says where the others are.
func TestAgentChecklist(t *testing.T) {
	t.Parallel()
	for _, r := range agentRows() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, r.task, r.fake)
			b.Models, b.Gateway = &llm.Client{}, trial.GatewayOff
			if r.change != nil {
				r.change(&b.cfg)
			}
			r.judge(t, b, b.runTimed(t))
		})
	}
}

// program chooses a known agent whose program the image has.
func program(c *jobdir.TrialConfig) {
	c.Agent.Name, c.Agent.ModelName = new("pi"), new("local/m")
	c.Agent.Kwargs = value.NewObject(1)
	c.Agent.Kwargs.Set("api_base", value.Str("http://127.0.0.1:1/v1"))
	c.Agent.Kwargs.Set("install", value.Str("skip"))
}

func agentName(name string) func(*jobdir.TrialConfig) {
	return func(c *jobdir.TrialConfig) { c.Agent.Name = &name }
}

// usedNothing: a context of which everything is null.
func usedNothing(t *testing.T, _ *bench, res *jobdir.TrialResult) {
	t.Helper()
	if r := res.AgentResult; r == nil || r.NInputTokens != nil || r.NOutputTokens != nil || r.CostUSD != nil || r.Metadata != nil {
		t.Errorf("the agent's result is %+v, want all null", r)
	}
}

func agentRows() []row {
	solution := func(do ...fake.Handler) []fake.Rule {
		return []fake.Rule{fake.On("/solution/solve.sh)", do...), granted}
	}
	piThere := func(run ...fake.Handler) []fake.Rule {
		return []fake.Rule{fake.On("command -v", fake.Exit(0)), fake.On("pi --version", fake.Print("0.73.1\n")), fake.On("pi --print", run...), granted}
	}
	return []row{
		{name: "row 4 a name without an agent", task: goodTask(), change: agentName("terminus"), exception: "ValueError",
			message: "Agent name terminus is not valid. Valid agent names: ", check: nothingMade},
		{name: "row 5 an unknown name", task: goodTask(), change: agentName("nobody"), exception: "ValueError", message: "claude-code", check: nothingMade},
		{name: "row 6 a variable that is not there", task: goodTask(), change: func(c *jobdir.TrialConfig) { c.Agent.Env.Set("K", "${NOPE}") },
			exception: "ValueError", message: "Environment variable 'NOPE' not found in host environment", check: nothingMade},
		{name: "row 7 the solution fails", task: goodTask(), fake: rules(solution(fake.Exit(7))...), rewards: one,
			check: func(t *testing.T, b *bench, res *jobdir.TrialResult) {
				b.has(t, "agent/exit-code.txt", "7")
				usedNothing(t, b, res)
			}},
		{name: "row 8 there is no solution", task: goodTask().without("solution/solve.sh"), fake: rules(granted), exception: "FileNotFoundError", message: "Solution script not found"},
		{name: "row 9 the task's variable of the solution counts", task: toml("[solution.env]\nA = \"task\"\n"),
			change: func(c *jobdir.TrialConfig) { c.Agent.Env.Set("A", "agent") }, rewards: one,
			fake: rules(fake.On("/solution/solve.sh)", fake.Exit(0)), granted),
			check: func(t *testing.T, b *bench, _ *jobdir.TrialResult) {
				for _, c := range b.backend.Calls() {
					if c.Op == fake.OpExec && strings.Contains(c.Command.Shell, "(/solution/solve.sh)") {
						last := ""
						for _, kv := range c.Command.Env {
							if strings.HasPrefix(kv, "A=") {
								last = kv
							}
						}
						if last != "A=task" {
							t.Errorf("the solution has %s", last)
						}
						return
					}
				}
				t.Error("the solution did not run")
			}},
		{name: "row 11 nop", task: goodTask(), change: agentName("nop"), fake: rules(granted), rewards: one, check: usedNothing},
		{name: "row 12 the agent's time is up", task: toml("[agent]\ntimeout_sec = 5.0\n"), change: program, fake: rules(piThere(fake.Print(piLog), fake.Hang())...),
			exception: "AgentTimeoutError", rewards: one,
			check: func(t *testing.T, b *bench, res *jobdir.TrialResult) {
				b.has(t, "agent/pi.txt", piLog)
				if n := res.AgentResult.NInputTokens; n == nil || n.String() != "11" {
					t.Errorf("the context has %v input tokens, want those of the log", n)
				}
			}},
		{name: "row 13 the agent's command fails", task: goodTask(), change: program, fake: rules(piThere(fake.Print(piLog), fake.Exit(3))...),
			exception: "NonZeroAgentExitCodeError", message: "Command failed (exit 3): ", rewards: one},
		{name: "row 14 the installation fails", task: goodTask(), change: func(c *jobdir.TrialConfig) {
			commandAgent("work")(c)
			c.Agent.Kwargs.Set("install", value.Str("install-it"))
		}, fake: rules(fake.On("install-it", fake.Exit(3)), granted), exception: "NonZeroAgentExitCodeError", message: "Command failed (exit 3): install-it",
			check: func(t *testing.T, b *bench, _ *jobdir.TrialResult) {
				if ran(b, "work") || ran(b, "/tests/test.sh") {
					t.Error("the agent or the verifier ran")
				}
			}},
	}
}

// piLog is what pi prints of one answer.
const piLog = `{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"done"}],"usage":{"input":10,"cacheRead":1,"output":2,"totalTokens":13}}}` + "\n"
