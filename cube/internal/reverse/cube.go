// Package reverse is a cube: agents are asked to reverse a word.
package reverse

import (
	"context"
	"fmt"
	"slices"

	"github.com/proctor-run/proctor/cube"
)

// Register adds the cube's types to a registry.
func Register(r *cube.Registry) error {
	return r.Add(&Metadata{}, &ToolConfig{}, &TaskConfig{}, &Config{})
}

// Metadata is what is known of a task before it is made.
type Metadata struct {
	cube.TaskMetadata
	Word string `json:"word"`
}

func (*Metadata) TypeName() string { return "reverse_cube.task.Metadata" }

// ToolConfig makes the tool: one action, made of a typed function.
type ToolConfig struct{}

func (*ToolConfig) TypeName() string { return "reverse_cube.tool.ToolConfig" }

func (*ToolConfig) Make(context.Context, cube.Container) (cube.Tool, error) {
	t := &tool{}
	var err error
	t.ActionTool, err = cube.NewActionTool("ReverseTool",
		cube.Func("answer", "Give the reversed word.", func(_ context.Context, in struct {
			Word string `json:"word" desc:"The word, reversed."`
		}) (any, error) {
			t.answer = in.Word
			return "noted", nil
		}))
	return t, err
}

type tool struct {
	*cube.ActionTool
	answer string
}

func (t *tool) Reset(context.Context) error { t.answer = ""; return nil }

// problem is the task's behaviour: how it begins and how it is scored.
type problem struct{ cube.TaskBase[*Metadata] }

func (p *problem) Reset(ctx context.Context) (*cube.Observation, cube.Info, error) {
	return cube.Observe(cube.Text(fmt.Sprintf("Reverse %q.", p.Metadata.Word))), nil, p.Tool().Reset(ctx)
}

func (p *problem) Evaluate(context.Context, *cube.Observation) (float64, cube.Info, error) {
	t, _ := cube.Find[*tool](p.Tool())
	want := []rune(p.Metadata.Word)
	slices.Reverse(want)
	if t.answer != string(want) {
		return 0, cube.Pairs("answer", t.answer), nil
	}
	return 1, cube.Pairs("answer", t.answer), nil
}

// TaskConfig makes a task; its JSON is all that a worker needs.
type TaskConfig struct{ cube.TaskConfigBase[*Metadata] }

func (*TaskConfig) TypeName() string { return "reverse_cube.task.TaskConfig" }

func (c *TaskConfig) Make(ctx context.Context, rc cube.RuntimeContext, b cube.ContainerBackend) (*cube.Task, error) {
	return c.Build(ctx, rc, b, &problem{}, &ToolConfig{})
}

// Config is the benchmark.
type Config struct{ cube.BenchmarkConfigBase }

func (*Config) TypeName() string { return "reverse_cube.benchmark.Config" }

func (*Config) Definition() cube.Definition {
	return cube.Definition{
		Metadata:   &cube.BenchmarkMetadata{Name: "reverse-cube", Version: "1.0.0", Description: "Words to reverse."},
		Tasks:      []cube.Metadata{task("cat"), task("benchmark")},
		TaskConfig: &TaskConfig{},
	}
}

func task(word string) *Metadata {
	return &Metadata{TaskMetadata: cube.TaskMetadata{ID: word}, Word: word}
}
