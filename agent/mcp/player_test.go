package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"image"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubes/arithmetic"
)

// TestCube plays a cube from its beginning to its reward.
func TestCube(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			task := spawn(t, "mul-6-7")
			p := newPlayer()
			reward := make(chan float64, 1)
			go func() {
				out, err := playTask(t.Context(), task, p)
				if err != nil {
					t.Error(err)
				}
				p.End(out.Error)
				reward <- out.Reward
			}()
			s := w.dial(t, p, nil)
			if got := s.InitializeResult(); got.Instructions != "What is 6 * 7?" || got.ProtocolVersion != w.version {
				t.Errorf("initialized with %q of version %s", got.Instructions, got.ProtocolVersion)
			}
			list, err := s.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := toolNames(list); !slices.Equal(got, []string{"submit_answer", cube.StopName}) {
				t.Errorf("tools %q", got)
			}
			wants(t, s, "submit_answer", map[string]any{"answer": 42}, "The task has ended.", false)
			if got := <-reward; got != 1 {
				t.Errorf("reward %v", got)
			}
			wants(t, s, "submit_answer", map[string]any{"answer": 42}, refused, true)
		})
	}
}

// playTask is a driver of an episode.
func playTask(ctx context.Context, task *cube.Task, agent cube.Agent) (*cube.EnvironmentOutput, error) {
	obs, _, err := task.Reset(ctx)
	if err != nil {
		return &cube.EnvironmentOutput{}, err
	}
	for {
		actions, err := agent.Act(ctx, obs, append(task.ActionSet(), cube.StopAction())) //nolint:contextcheck // an action set has no context
		if err != nil {
			return &cube.EnvironmentOutput{}, err
		}
		out, err := task.Step(ctx, actions...)
		if err != nil {
			return &cube.EnvironmentOutput{}, err
		}
		if out.Done {
			return out, nil
		}
		obs = out.Obs
	}
}

func spawn(t *testing.T, id string) *cube.Task {
	t.Helper()
	reg := cube.NewRegistry(cube.Options{})
	if err := arithmetic.Register(reg); err != nil {
		t.Fatal(err)
	}
	bench, err := reg.Make(t.Context(), &arithmetic.Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for cfg, err := range bench.TaskConfigs() {
		if err != nil {
			t.Fatal(err)
		}
		if cfg.TaskID() == id {
			task, err := bench.Spawn(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = task.Close(context.Background()) })
			return task
		}
	}
	t.Fatalf("there is no task %q", id)
	return nil
}

func toolNames(list *sdk.ListToolsResult) []string {
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// TestTurns: calls are turns, answers are what follows them, and slips cost nothing.
func TestTurns(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			g := start(t, nil)
			s := w.dial(t, g.Player, nil)
			wants(t, s, "look", nil, "did look{}", false)
			wants(t, s, "walk", map[string]any{"to": "door", "fast": true}, "did walk{'fast': True, 'to': 'door'}", false)
			wants(t, s, "walk", nil, `The argument "to" is missing.`, true)
			wants(t, s, "walk", map[string]any{"to": "door", "how": 1}, `There is no argument "how".`, true)
			wants(t, s, "walk", []string{"door"}, "The arguments must be a JSON object, but they are of type list.", true)
			wants(t, s, "walk", json.RawMessage("null"), `The argument "to" is missing.`, true)

			_, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "fly"})
			var wire *jsonrpc.Error
			if !errors.As(err, &wire) || wire.Code != jsonrpc.CodeInvalidParams {
				t.Errorf("a tool that is not there: %v", err)
			}
			wants(t, s, cube.StopName, nil, "Task finished by the agent.", false)
			wants(t, s, "look", nil, refused, true)
			wants(t, s, "fly", nil, refused, true)
			want := []string{"look{}", "walk{'fast': True, 'to': 'door'}", "final_step{}"}
			if diff := cmp.Diff(want, g.done()); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			if err := <-g.ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTools: the list has the order of the actions, and schemas that clients take.
func TestTools(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			s := w.dial(t, start(t, nil).Player, nil)
			list, err := s.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			empty := map[string]any{"type": "object", "properties": map[string]any{}}
			want := []*sdk.Tool{
				{Name: "walk", Description: "Walk.", InputSchema: map[string]any{
					"type":       "object",
					"properties": map[string]any{"to": map[string]any{"type": "string"}, "fast": map[string]any{"type": "boolean"}},
					"required":   []any{"to"},
				}},
				{Name: "look", Description: "Look around.", InputSchema: empty},
				{Name: cube.StopName, Description: "Stop the task execution.", InputSchema: empty},
			}
			if diff := cmp.Diff(want, list.Tools); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
			if _, err := s.ListTools(t.Context(), &sdk.ListToolsParams{Cursor: "x"}); err == nil {
				t.Error("there is a second page")
			}
		})
	}
}

// TestContents: what an observation has, and how it is shown.
func TestContents(t *testing.T) {
	t.Parallel()
	named := cube.Text("brown")
	named.Name = new("Colour")
	shown := cube.Observe(cube.Text("first"), named, cube.Structure(cube.Pairs("b", 1, "a", []int{2, 3})),
		&cube.ImageContent{Data: cube.NewImage(image.NewGray(image.Rect(0, 0, 2, 2)))},
		&cube.AudioContent{Data: "x"}, cube.Text("  "))
	for _, w := range ways {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			answers := map[string]*cube.Observation{"look": shown, "walk": {}}
			g := start(t, func(a cube.Action) (*cube.Observation, *cube.StepError) {
				if obs := answers[a.Name]; obs != nil {
					return obs, nil
				}
				return nil, nil
			})
			s := w.dial(t, g.Player, nil)
			wants(t, s, "look", nil, `first|## Colour
brown|{"b": 1, "a": [2, 3]}|<image/png>|[content of type cube.core.AudioContent, which cannot be shown]`, false)
			wants(t, s, "walk", map[string]any{"to": "x"}, "(no result)", false)
		})
	}
}

// TestPrompt: the first observation is a prompt, images and all.
func TestPrompt(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			p := newPlayer()
			go func() {
				_, _ = p.Act(t.Context(), cube.Observe(cube.Text("Look:"),
					&cube.ImageContent{Data: cube.NewImage(image.NewGray(image.Rect(0, 0, 2, 2)))}), offered())
			}()
			s := w.dial(t, p, nil)
			if got := s.InitializeResult().Instructions; got != "Look:\n\n[image: number 1 of the prompt \"task\"]" {
				t.Errorf("instructions %q", got)
			}
			list, err := s.ListPrompts(t.Context(), nil)
			if err != nil || len(list.Prompts) != 1 || list.Prompts[0].Name != "task" {
				t.Fatalf("prompts %v, %v", list, err)
			}
			prompt, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "task"})
			if err != nil {
				t.Fatal(err)
			}
			var contents []sdk.Content
			for _, m := range prompt.Messages {
				if m.Role != "user" {
					t.Errorf("a message of %q", m.Role)
				}
				contents = append(contents, m.Content)
			}
			if got := texts(contents); got != "Look:|<image/png>" {
				t.Errorf("prompt %q", got)
			}
			if _, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "other"}); err == nil {
				t.Error("there is another prompt")
			}
		})
	}
}

// TestFailure: an action that ends the task with an error is told, without its trace.
func TestFailure(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			g := start(t, func(cube.Action) (*cube.Observation, *cube.StepError) {
				return nil, &cube.StepError{ErrorType: "ValueError", ExceptionStr: "no such way", StackTrace: "secret"}
			})
			s := w.dial(t, g.Player, nil)
			wants(t, s, "look", nil, "ValueError: no such way", true)
			wants(t, s, "look", nil, refused, true)
			g.End(nil) // the first counts
		})
	}
}
