package trial_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
)

// A cube that scores what the last step saw: 1 for the word of the n-th look.

type lookProblem struct {
	cube.TaskBase[*lookMetadata]
	looks       int
	done        int // after so many looks; 0 for never
	failing     bool
	evaluations int
	last        string
}

type lookMetadata struct{ cube.TaskMetadata }

func (*lookMetadata) TypeName() string { return "look_cube.Metadata" }

type lookTool struct{ p *lookProblem }

func (*lookTool) TypeName() string { return "look_cube.ToolConfig" }

func (c *lookTool) Make(context.Context, cube.Container) (cube.Tool, error) {
	return cube.NewActionTool("LookTool", cube.Func("look", "Look.", func(context.Context, struct{}) (any, error) {
		c.p.looks++
		return fmt.Sprintf("look %d", c.p.looks), nil
	}))
}

func (p *lookProblem) Reset(context.Context) (*cube.Observation, cube.Info, error) {
	p.looks = 0
	return cube.Observe(cube.Text("Look.")), nil, nil
}

func (p *lookProblem) Finished(context.Context, *cube.Observation) (bool, error) {
	return p.done > 0 && p.looks >= p.done, nil
}

func (p *lookProblem) Evaluate(_ context.Context, obs *cube.Observation) (float64, cube.Info, error) {
	p.evaluations++
	if p.failing {
		return 0, nil, cube.RuntimeErrorf("no judge today")
	}
	p.last = "nothing"
	if obs != nil && len(obs.Contents) > 0 {
		p.last, _ = obs.Contents[len(obs.Contents)-1].Markdown()
	}
	info := cube.Pairs("saw", p.last)
	if strings.Contains(p.last, "look ") {
		return 1, info, nil
	}
	return 0.25, info, nil
}

// lookBench runs trials of the cube.
func lookBench(t *testing.T, p *lookProblem, agentName string, settings ...any) *bench {
	t.Helper()
	b := newBench(t, goodTask(), fake.Config{})
	p.Metadata = &lookMetadata{cube.TaskMetadata{ID: "look", RecommendedMaxSteps: new(4)}}
	p.ToolConfig = &lookTool{p}
	b.Cube = func(jobdir.TrialConfig) (*trial.CubeTask, error) {
		return &trial.CubeTask{
			Name: "look-cube/look", Checksum: "0",
			Make: func(ctx context.Context, _ sandbox.Backend) (*cube.Task, error) { return cube.NewTask(ctx, p) },
		}, nil
	}
	b.cfg.Agent.Name, b.cfg.Agent.Kwargs = &agentName, cube.Pairs(settings...)
	return b
}

func looks(n int) cube.List {
	var list cube.List
	for range n {
		list = append(list, cube.Pairs("name", "look", "arguments", cube.Pairs()))
	}
	return list
}

func TestEpisodes(t *testing.T) {
	t.Parallel()
	stop := cube.Pairs("name", "final_step")
	cases := []struct {
		name     string
		problem  lookProblem
		agent    string
		settings []any
		reward   string
		saw      string
		note     jobdir.EpisodeNote
	}{
		{
			name: "the reward of the final step counts", problem: lookProblem{done: 2},
			agent: "scripted", settings: []any{"actions", looks(3)},
			reward: "{'reward': 1.0}", saw: "look 2", note: jobdir.EpisodeNote{Steps: 2, MaxSteps: 4, End: jobdir.EpisodeDone},
		},
		{
			name: "an agent that does nothing more", agent: "scripted", settings: []any{"actions", looks(1)},
			reward: "{'reward': 1.0}", saw: "look 1", note: jobdir.EpisodeNote{Steps: 1, MaxSteps: 4, End: jobdir.EpisodeStopped},
		},
		{
			name: "nop", agent: "nop",
			reward: "{'reward': 0.25}", saw: "Look.", note: jobdir.EpisodeNote{MaxSteps: 4, End: jobdir.EpisodeStopped},
		},
		{
			name: "a stop action that is accepted", agent: "scripted", settings: []any{"actions", append(looks(1), stop)},
			reward: "{'reward': 0.25}", saw: "Task finished by the agent.", note: jobdir.EpisodeNote{Steps: 1, MaxSteps: 4, End: jobdir.EpisodeStopped},
		},
		{
			name: "a stop that is rejected", problem: rejecting(), agent: "scripted", settings: []any{"actions", looks(2)},
			reward: "{'reward': 1.0}", saw: "look 2", note: jobdir.EpisodeNote{Steps: 2, MaxSteps: 4, End: jobdir.EpisodeStopped},
		},
		{
			name: "a stop action that is rejected", problem: rejecting(), agent: "scripted", settings: []any{"actions", append(looks(1), stop)},
			reward: "{'reward': 1.0}", saw: "look 1", note: jobdir.EpisodeNote{Steps: 1, MaxSteps: 4, End: jobdir.EpisodeStopped},
		},
		{
			name: "nop where stops are rejected", problem: rejecting(), agent: "nop",
			reward: "{'reward': 0.25}", saw: "Look.", note: jobdir.EpisodeNote{MaxSteps: 4, End: jobdir.EpisodeStopped},
		},
		{
			name: "the recommended limit", agent: "scripted", settings: []any{"actions", looks(9)},
			reward: "{'reward': 1.0}", saw: "look 4", note: jobdir.EpisodeNote{Steps: 4, MaxSteps: 4, End: jobdir.EpisodeMaxSteps, Truncated: true},
		},
		{
			name: "a limit of one's own", agent: "scripted", settings: []any{"actions", looks(9), "max_steps", 6},
			reward: "{'reward': 1.0}", saw: "look 6", note: jobdir.EpisodeNote{Steps: 6, MaxSteps: 6, End: jobdir.EpisodeMaxSteps, Truncated: true},
		},
	}
	for i := range cases {
		c := &cases[i]
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := lookBench(t, &c.problem, c.agent, c.settings...)
			res := b.run(t)
			if got := rewardsText(res); got != c.reward || res.ExceptionInfo != nil {
				t.Errorf("rewards %s, want %s; exception %v", got, c.reward, res.ExceptionInfo)
			}
			if c.problem.evaluations != 1 || !strings.Contains(c.problem.last, c.saw) {
				t.Errorf("%d evaluations, the last saw %q, want one that saw %q", c.problem.evaluations, c.problem.last, c.saw)
			}
			notes, err := jobdir.ReadNotes(b.dir)
			if err != nil || notes.Episode == nil || *notes.Episode != c.note {
				t.Errorf("episode %+v (%v), want %+v", notes.Episode, err, c.note)
			}
			if v, _ := res.AgentResult.Metadata.Get("truncated"); v != cube.Value(cube.Bool(c.note.Truncated)) {
				t.Errorf("truncated is %v in the agent's result", v)
			}
			steps, err := os.ReadFile(filepath.Join(b.dir, "agent", "steps.jsonl"))
			if err != nil || strings.Contains(string(steps), `"truncated":true`) != c.note.Truncated {
				t.Errorf("steps (%v):\n%s", err, steps)
			}
		})
	}
}

// TestStopWithArguments: by the later rules it is an action whose arguments do not fit,
// which the agent reads and goes on.
func TestStopWithArguments(t *testing.T) {
	t.Parallel()
	p := &lookProblem{}
	p.LaterRules = true
	stop := cube.Pairs("name", "final_step", "arguments", cube.Pairs("why", "done"))
	res := lookBench(t, p, "scripted", "actions", append(cube.List{stop}, looks(1)...)).run(t)
	if got := rewardsText(res); got != "{'reward': 1.0}" || res.ExceptionInfo != nil {
		t.Errorf("rewards %s, exception %+v", got, res.ExceptionInfo)
	}
	if !strings.Contains(p.last, "look 1") {
		t.Errorf("the evaluation saw %q", p.last)
	}
}

func rejecting() lookProblem {
	p := lookProblem{}
	p.RejectAgentStop = true
	return p
}

// TestFailedEvaluation: what the last step saw is kept when it cannot be scored.
func TestFailedEvaluation(t *testing.T) {
	t.Parallel()
	b := lookBench(t, &lookProblem{done: 1, failing: true}, "scripted", "actions", looks(1))
	res := b.run(t)
	if got := exceptionType(res); got != "RuntimeError" {
		t.Errorf("exception %q", got)
	}
	steps, err := os.ReadFile(filepath.Join(b.dir, "agent", "steps.jsonl"))
	if err != nil || !strings.Contains(string(steps), "look 1") || !strings.Contains(string(steps), `"error":"RuntimeError: no judge today"`) {
		t.Errorf("steps (%v):\n%s", err, steps)
	}
}

// TestFailedForcedEvaluation: so is what the agent stopped with, or what it saw
// when its steps were used up.
func TestFailedForcedEvaluation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		actions cube.List
		line    string // of the evaluation
	}{
		"stopped":      {append(looks(1), cube.Pairs("name", "final_step")), `{"action":{"id":null,"name":"final_step","arguments":{},"_type":"cube.core.Action"},"output":{`},
		"no action":    {looks(1), `{"action":null,"output":{`},
		"out of steps": {looks(9), `{"action":null,"output":{`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := lookBench(t, &lookProblem{failing: true}, "scripted", "actions", c.actions)
			res := b.run(t)
			if got := exceptionType(res); got != "RuntimeError" {
				t.Errorf("exception %q", got)
			}
			steps, err := os.ReadFile(filepath.Join(b.dir, "agent", "steps.jsonl"))
			lines := strings.Split(strings.TrimSpace(string(steps)), "\n")
			last := lines[len(lines)-1]
			if err != nil || !strings.HasPrefix(last, c.line) || !strings.HasSuffix(last, `"error":"RuntimeError: no judge today"}`) {
				t.Errorf("steps (%v):\n%s", err, steps)
			}
		})
	}
}

// reporter is an agent of somebody else: it does several things in a turn and
// reports on its work.
type reporter struct{ offered []string }

func (r *reporter) Act(_ context.Context, obs *cube.Observation, actions []cube.ActionSchema) ([]cube.Action, error) {
	for _, a := range actions {
		r.offered = append(r.offered, a.Name)
	}
	return []cube.Action{cube.NewAction("look"), cube.NewAction("look"), cube.Stop()}, nil
}

func (*reporter) Info() agent.Info { return agent.Info{Name: "reporter", Version: "7"} }

func (*reporter) Report() agent.Result {
	return agent.Result{InputTokens: new(int64(11)), Metadata: cube.Pairs("mood", "good")}
}

func TestStrangersAgent(t *testing.T) {
	t.Parallel()
	r := &reporter{}
	b := lookBench(t, &lookProblem{}, "mine", "colour", "red")
	b.Agents = append(agents.All(), agent.Entry{
		Name: "mine", Settings: []agent.Setting{{Name: "colour"}},
		Stepped: func(c agent.Config) (cube.Agent, error) {
			if c.Text("colour") != "red" || c.LogDir == "" {
				t.Errorf("made of %+v", c)
			}
			return r, nil
		},
	})
	res := b.run(t)
	if got := rewardsText(res); got != "{'reward': 0.25}" {
		t.Errorf("rewards %s, exception %v", got, res.ExceptionInfo)
	}
	if got := strings.Join(r.offered, " "); got != "look final_step" {
		t.Errorf("offered %q", got)
	}
	if res.AgentInfo.Name != "reporter" || res.AgentInfo.Version != "7" || res.AgentResult.NInputTokens == nil {
		t.Errorf("info %+v, result %+v", res.AgentInfo, res.AgentResult)
	}
	if v, _ := res.AgentResult.Metadata.Get("mood"); v != cube.Value(cube.Str("good")) {
		t.Errorf("metadata %v", res.AgentResult.Metadata)
	}
}
