// Package chat plays cubes with a chat model, and shows it pictures and data.
package chat

import (
	"context"
	"fmt"
	"image"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/value"
)

// Model answers a conversation with the calls of tools that it wants.
type Model func(ctx context.Context, messages, tools value.List) (calls []*value.Object, err error)

// Agent lets a model choose the actions: what it sees goes to the model in the
// form of chat messages, and the tools that it calls are the actions. No call
// means that the model has finished.
func Agent(ask Model) cube.Agent {
	var messages value.List
	return cube.AgentFunc(func(ctx context.Context, obs *cube.Observation, actions []cube.ActionSchema) ([]cube.Action, error) {
		seen, err := obs.Messages()
		if err != nil {
			return nil, err
		}
		messages = append(messages, seen...)
		tools := make(value.List, len(actions))
		for i := range actions {
			tools[i] = actions[i].ToolDescriptor()
		}
		calls, err := ask(ctx, messages, tools)
		if err != nil {
			return nil, fmt.Errorf("asking the model: %w", err)
		}
		return actionsOf(calls)
	})
}

func actionsOf(calls []*value.Object) ([]cube.Action, error) {
	list := make([]cube.Action, len(calls))
	for i, call := range calls {
		var err error
		if list[i], err = cube.ActionFromToolCall(call); err != nil {
			return nil, fmt.Errorf("call %d of the model: %w", i, err)
		}
	}
	return list, nil
}

// Screen is an observation of a picture with what is known about it.
func Screen(picture image.Image, facts any) (*cube.Observation, error) {
	data, err := cube.ContentOf(facts)
	if err != nil {
		return nil, err
	}
	return cube.Observe(&cube.ImageContent{Data: cube.NewImage(picture)}, data), nil
}

// Pictures counts the pictures and the data of an observation.
func Pictures(obs *cube.Observation) (pictures, data int) {
	for _, c := range obs.Contents {
		switch c.(type) {
		case *cube.ImageContent:
			pictures++
		case *cube.StructuredContent:
			data++
		}
	}
	return pictures, data
}

// Together is the tool of a task that has two, from the configs of each.
func Together(ctx context.Context, c cube.Container, configs ...cube.ToolConfig) (*cube.Toolbox, error) {
	tools := make([]cube.Tool, len(configs))
	for i, cfg := range configs {
		var err error
		if tools[i], err = cfg.Make(ctx, c); err != nil {
			return nil, err
		}
	}
	return cube.NewToolbox(tools...)
}

// Judged is the result of an action of a tool with rules of its own: what it
// shows, or why the action ends the task.
func Judged(text string, broken error) cube.Result {
	if broken != nil {
		return cube.Failed(broken)
	}
	return cube.Observed(cube.Observe(cube.Text(text)))
}

// Refusal is what a failed step says of its error; empty when it did not fail.
func Refusal(out *cube.EnvironmentOutput) string { return say(out.Error) }

func say(e *cube.StepError) string {
	if e == nil {
		return ""
	}
	return e.ErrorType + ": " + e.ExceptionStr
}
