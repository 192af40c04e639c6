package chat

import (
	"context"
	"errors"
	"image"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubes/arithmetic"
	"github.com/proctor-run/proctor/value"
)

func call(name string, args ...any) *value.Object {
	return cube.Pairs("id", "1", "function", cube.Pairs("name", name, "arguments", cube.Pairs(args...)))
}

// TestAgent lets a scripted model look at a task and call a tool of it.
func TestAgent(t *testing.T) {
	t.Parallel()
	r := cube.NewRegistry(cube.Options{})
	if err := arithmetic.Register(r); err != nil {
		t.Fatal(err)
	}
	sel, err := r.Select(&arithmetic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	bench, err := sel.Make(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := bench.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	for cfg, err := range bench.TaskConfigs() {
		if err != nil {
			t.Fatal(err)
		}
		task, err := bench.Spawn(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		obs, _, err := task.Reset(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var offered, seen int
		agent := Agent(func(_ context.Context, messages, tools value.List) ([]*value.Object, error) {
			offered, seen = len(tools), len(messages)
			return []*value.Object{call("submit_answer", "answer", "0")}, nil
		})
		actions, err := agent.Act(t.Context(), obs, task.ActionSet())
		if err != nil || len(actions) != 1 || offered == 0 || seen == 0 {
			t.Fatalf("%v, %v; %d tools, %d messages", actions, err, offered, seen)
		}
		out, err := task.Step(t.Context(), actions...)
		if err != nil {
			t.Fatal(err)
		}
		if refusal := Refusal(out); refusal != "" {
			t.Errorf("the step was refused: %s", refusal)
		}
		if err := task.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := task.Step(t.Context(), actions...); !errors.Is(err, cube.ErrClosed) {
			t.Errorf("a step after the end gave %v", err)
		}
		break
	}
}

func TestScreen(t *testing.T) {
	t.Parallel()
	obs, err := Screen(image.NewRGBA(image.Rect(0, 0, 2, 2)), map[string]int{"width": 2})
	if err != nil {
		t.Fatal(err)
	}
	if pictures, data := Pictures(obs); pictures != 1 || data != 1 {
		t.Errorf("%d pictures, %d data", pictures, data)
	}
}

// bellConfig makes a tool with one action.
type bellConfig struct{}

func (*bellConfig) TypeName() string { return "chat.tool.BellConfig" }

func (*bellConfig) Make(context.Context, cube.Container) (cube.Tool, error) {
	return cube.NewActionTool("Bell", cube.Func("ring", "Ring the bell.", func(context.Context, struct{}) (any, error) { return "ding", nil }))
}

func TestTogether(t *testing.T) {
	t.Parallel()
	box, err := Together(t.Context(), nil, &bellConfig{})
	if err != nil || len(box.Actions()) == 0 {
		t.Errorf("%v", err)
	}
}

func TestJudged(t *testing.T) {
	t.Parallel()
	if r := Judged("", errors.New("the page is gone")); r.Err == nil || !strings.Contains(say(r.Err), "the page is gone") {
		t.Errorf("%+v", r)
	}
	if r := Judged("done", nil); r.Err != nil || r.Obs == nil {
		t.Errorf("%+v", r)
	}
}
