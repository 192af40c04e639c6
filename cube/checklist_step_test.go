package cube_test

import (
	"testing"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/internal/democube"
	"github.com/proctor-run/proctor/value"
)

// script is a step scenario in Go.
type script struct {
	tool    string // JSON of tool_results
	task    string // JSON of task
	actions []cube.Action
}

func (s script) run(t *testing.T) (*cube.EnvironmentOutput, []string, error) {
	t.Helper()
	parse := func(text string) cube.Value {
		v, err := value.DecodeText(text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	log := &democube.Log{}
	c := vcase{cube.Pairs("task", parse(s.task), "tool_results", parse(s.tool))}
	task := scriptedTask(t, registry(t, cube.Options{}), c, log)
	clock := &steppedClock{}
	task.SetClock(clock.now)
	out, err := task.Step(t.Context(), s.actions...)
	return out, log.Lines(), err
}

func act(names ...string) []cube.Action {
	var out []cube.Action
	for _, n := range names {
		out = append(out, cube.Action{Name: n})
	}
	return out
}

func texts(o *cube.Observation) []string {
	var out []string
	for _, c := range o.Contents {
		out = append(out, c.(*cube.TextContent).Data)
	}
	return out
}

const oneScore = `{"evaluate": [{"reward": 1.0, "info": {}}]}`

func TestChecklistSteps(t *testing.T) {
	t.Parallel()
	row(t, "10 stop between actions", func(t *testing.T) {
		out, calls, err := script{`[{"text": "one"}]`, oneScore, act("a", "final_step", "b")}.run(t)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "contents", texts(out.Obs), []string{"one", "Task finished by the agent."})
		equal(t, "calls", calls, []string{"execute:a", "evaluate(contents=2)"})
	})
	row(t, "11 stop with id", func(t *testing.T) {
		stop := cube.NewAction(cube.StopName, "reason", "done")
		stop.ID = new("call_9")
		out, _, err := script{`[]`, oneScore, []cube.Action{stop}}.run(t)
		if err != nil {
			t.Fatal(err)
		}
		if out.Obs.Contents[0].Head().ToolCallID != nil {
			t.Error("the stop text has a tool call id")
		}
	})
	row(t, "12 stop not accepted", func(t *testing.T) {
		_, calls, err := script{`[{"text": "x"}]`, `{"accept_agent_stop": false}`, act("final_step")}.run(t)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "calls", calls[:1], []string{"execute:final_step"})
	})
	row(t, "13 step error", func(t *testing.T) {
		out, calls, err := script{`[{"text": "one"}, {"step_error": {"error_type": "E", "exception_str": "m", "stack_trace": "t"}}]`, oneScore, act("a", "b", "c")}.run(t)
		if err != nil {
			t.Fatal(err)
		}
		if !out.Done || out.Error == nil || len(out.Obs.Contents) != 1 || out.Profiling.Actions != 2 {
			t.Errorf("got %+v", out)
		}
		equal(t, "calls", calls, []string{"execute:a", "execute:b", "evaluate(contents=1)"})
	})
	row(t, "14 nothing to do", func(t *testing.T) {
		out, calls, err := script{`[]`, `{}`, nil}.run(t)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "info", compact(out.FullInfo()), `{"profiling":{"obs_postprocess":0.25}}`)
		equal(t, "calls", calls, []string{"finished(contents=0)"})
	})
}

func TestChecklistScoring(t *testing.T) {
	t.Parallel()
	row(t, "15 validate per step", func(t *testing.T) {
		out, _, err := script{`[{"text": "x"}]`, `{"validate_per_step": true, "evaluate": [{"reward": 0.5, "info": {}}]}`, act("a")}.run(t)
		if err != nil {
			t.Fatal(err)
		}
		if out.Reward != 0.5 || out.Done {
			t.Errorf("got %+v", out)
		}
	})
	row(t, "16 own profiling", func(t *testing.T) {
		out, _, err := script{`[]`, `{"finished": [true], "evaluate": [{"reward": 0, "info": {"profiling": "mine", "z": 1}}]}`, nil}.run(t)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "info", compact(out.FullInfo()), `{"profiling":{"evaluate":0.25,"obs_postprocess":0.5},"z":1}`)
	})
	row(t, "17 postprocess", func(t *testing.T) {
		out, calls, err := script{`[{"text": "one"}]`, `{"finished": [true], "evaluate": [{"reward": 1, "info": {}}], "obs_postprocess": {"replace_text": "new"}}`, act("a")}.run(t)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "contents", texts(out.Obs), []string{"new"})
		equal(t, "calls", calls, []string{"execute:a", "finished(contents=1)", "evaluate(contents=1)", "obs_postprocess(contents=1)"})
	})
	t.Run("reward that is none", func(t *testing.T) {
		out, _, err := script{`[{"text": "one"}]`, `{"finished": [true], "evaluate": [{"reward": "much", "info": {}}]}`, act("a")}.run(t)
		if err == nil || out == nil || out.Reward != 0 {
			t.Fatalf("got %+v, %v", out, err)
		}
		equal(t, "contents", texts(out.Obs), []string{"one"})
	})
	row(t, "18 unknown action", func(t *testing.T) {
		task := demoTask(t)
		out, err := task.Step(t.Context(), cube.NewAction("nope"))
		if out != nil || err == nil || err.Error() != "Action nope does not exist in DemoTool." {
			t.Errorf("got %v, %v", out, err)
		}
		if err := task.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	row(t, "19 clock", func(t *testing.T) {
		out, _, err := script{`[{"text": "a"}, {"text": "b"}]`, `{}`, act("a", "b")}.run(t)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "info", compact(out.FullInfo()), `{"profiling":{"tool_execute":{"total":0.75,"avg_per_action":0.375,"n_actions":2},"obs_postprocess":0.75}}`)
	})
}

func demoTask(t testing.TB) *cube.Task {
	t.Helper()
	cfg := &democube.TaskConfig{Target: 3}
	cfg.Metadata = democube.NewMetadata("task-1")
	task, err := cfg.Make(t.Context(), cube.RuntimeContext{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return task
}
