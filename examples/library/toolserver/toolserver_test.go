package toolserver_test

import (
	"context"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubes/arithmetic"
	"github.com/proctor-run/proctor/examples/library/toolserver"
)

func sum(t *testing.T) *cube.Task {
	t.Helper()
	r := cube.NewRegistry(cube.Options{})
	if err := arithmetic.Register(r); err != nil {
		t.Fatal(err)
	}
	all, err := r.Select(&arithmetic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for c, err := range all.TaskConfigs() {
		if err != nil {
			t.Fatal(err)
		}
		if c.TaskID() != "add-3-4" {
			continue
		}
		task, err := c.Make(t.Context(), cube.RuntimeContext{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = task.Close(context.Background()) })
		return task
	}
	t.Fatal("there is no such task")
	return nil
}

func TestPlay(t *testing.T) {
	t.Parallel()
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}` + "\n"
	for name, c := range map[string]struct {
		lines, answer string
		reward        float64
	}{
		"right":  {`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"submit_answer","arguments":{"answer":7}}}`, "The task has ended.", 1},
		"wrong":  {`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"submit_answer","arguments":{"answer":8}}}`, "The task has ended.", 0},
		"stop":   {`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"final_step"}}`, "Task finished by the agent.", 0},
		"silent": {"", "What is 3 + 4?", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			reward, err := toolserver.Play(t.Context(), sum(t), strings.NewReader(hello+c.lines), &out)
			if err != nil || reward != c.reward || !strings.Contains(out.String(), c.answer) {
				t.Errorf("reward %v, error %v, answers:\n%s", reward, err, out.String())
			}
		})
	}
}
