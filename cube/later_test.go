package cube_test

import (
	"context"
	"errors"
	"testing"

	"github.com/proctor-run/proctor/cube"
)

// laterTask is a task whose tool has one action that works and one that fails.
func laterTask(t *testing.T, reject bool) *cube.Task {
	t.Helper()
	type input struct {
		A int    `json:"a"`
		B string `json:"b"`
	}
	tool, err := cube.NewActionTool("Tool",
		cube.Func("zoom", "Zoom.", func(context.Context, none) (any, error) { return "zoomed", nil }),
		cube.Func("add", "Add.", func(_ context.Context, in input) (any, error) { return in.B, nil }),
		cube.Func("fail", "Fail.", func(context.Context, none) (any, error) { return nil, errors.New("it broke") }))
	if err != nil {
		t.Fatal(err)
	}
	p := &turnProblem{}
	p.Metadata = &cube.TaskMetadata{ID: "t"}
	p.ToolConfig = &scriptedConfig{tool: tool}
	p.RejectAgentStop = reject
	task, err := cube.NewTask(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func actionNames(task *cube.Task) []string {
	var names []string
	for _, a := range task.ActionSet() {
		names = append(names, a.Name)
	}
	return names
}

func TestLaterRules(t *testing.T) {
	t.Parallel()
	withID := func(a cube.Action) cube.Action {
		id := "call-1"
		a.ID = &id
		return a
	}
	const first = `{"tool_call_id":null,"name":null,"data":"`
	const answer = `{"tool_call_id":"call-1","name":null,"data":"`
	const end = `","_type":"cube.core.TextContent"}`
	cases := map[string]struct {
		actions []cube.Action
		obs     string
		done    bool
		err     string
	}{
		"failed, and the next works": {
			[]cube.Action{withID(cube.NewAction("fail")), cube.NewAction("zoom")},
			first + "Action failed — Exception: it broke" + end + "," + first + "zoomed" + end, false, "it broke",
		},
		"argument missing": {
			[]cube.Action{withID(cube.NewAction("add"))},
			answer + "Invalid arguments for add: missing a required argument: 'a'. Expected parameters: ['a', 'b']." + end, false, "",
		},
		"argument unknown": {
			[]cube.Action{withID(cube.NewAction("add", "a", 1, "b", "x", "c", 2))},
			answer + "Invalid arguments for add: got an unexpected keyword argument 'c'. Expected parameters: ['a', 'b']." + end, false, "",
		},
		"argument mistyped": {
			[]cube.Action{withID(cube.NewAction("add", "a", "one", "b", "x"))},
			answer + "Invalid arguments for add: argument 'a': Input should be a valid integer, unable to parse string as an integer. Expected parameters: ['a', 'b']." + end, false, "",
		},
		"stop": {
			[]cube.Action{withID(cube.Stop()), cube.NewAction("zoom")},
			first + "Task finished by the agent." + end, true, "",
		},
		"stop with an argument": {
			[]cube.Action{withID(cube.NewAction(cube.StopName, "x", 1))},
			answer + "Invalid arguments for final_step: got an unexpected keyword argument 'x'. Expected parameters: []." + end, false, "",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := laterTask(t, true)
			task.UseLaterRules()
			if !task.AcceptsStop() {
				t.Error("the stop action is not accepted")
			}
			out, err := task.Step(t.Context(), c.actions...)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "observation", marshal(t, out.Obs), `{"contents":[`+c.obs+`],"_type":"cube.core.Observation"}`)
			equal(t, "done", out.Done, c.done)
			got := ""
			if out.Error != nil {
				got = out.Error.ExceptionStr
			}
			equal(t, "error", got, c.err)
		})
	}
}

func TestLaterRulesListTheStopAction(t *testing.T) {
	t.Parallel()
	task := laterTask(t, true)
	equal(t, "actions", actionNames(task), []string{"add", "fail", "zoom"})
	task.UseLaterRules()
	equal(t, "actions", actionNames(task), []string{"add", "fail", "final_step", "zoom"})
	equal(t, "schema", marshal(t, &task.ActionSet()[2]),
		`{"name":"final_step","description":"Stop the task execution.","parameters":{"type":"object","properties":{}},"_type":"cube.core.ActionSchema"}`)
}

func TestLaterRulesAreOffByDefault(t *testing.T) {
	t.Parallel()
	task := laterTask(t, false)
	out, err := task.Step(t.Context(), cube.NewAction("fail"), cube.NewAction("zoom"))
	if err != nil {
		t.Fatal(err)
	}
	if !out.Done || out.Error == nil || len(out.Obs.Contents) != 0 || out.Reward != 1 {
		t.Errorf("got %+v", out)
	}
	out, err = laterTask(t, false).Step(t.Context(), cube.NewAction(cube.StopName, "x", 1))
	if err != nil || !out.Done {
		t.Errorf("got %+v, %v", out, err)
	}
	_, err = laterTask(t, true).Step(t.Context(), cube.Stop())
	wantMessage(t, err, "Action final_step does not exist in Tool.")
}
