// Command many is the program of a cube's author, with as many tasks as the
// variable MANY_TASKS says. The tasks do nothing: what a job of them takes is what
// proctor takes.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cubecli"
)

func main() {
	cubecli.Main(cubecli.Cube{
		Name: "many-cube",
		Register: func(r *cube.Registry) error {
			return r.Add(&metadata{}, &toolConfig{}, &taskConfig{}, &config{})
		},
		Config: func(cube.ContainerBackend) cube.BenchmarkConfig { return &config{} },
	})
}

// size is how many tasks there are.
func size() int {
	n, err := strconv.Atoi(os.Getenv("MANY_TASKS"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "many: MANY_TASKS:", err)
		os.Exit(2)
	}
	return n
}

type metadata struct{ cube.TaskMetadata }

func (*metadata) TypeName() string { return "many_cube.task.Metadata" }

type toolConfig struct{}

func (*toolConfig) TypeName() string { return "many_cube.tool.ToolConfig" }

func (*toolConfig) Make(context.Context, cube.Container) (cube.Tool, error) {
	return cube.NewActionTool("Tool", cube.Func("wait", "Wait.", func(context.Context, struct{}) (any, error) {
		return "done", nil
	}))
}

type problem struct{ cube.TaskBase[*metadata] }

func (*problem) Reset(context.Context) (*cube.Observation, cube.Info, error) {
	return cube.Observe(cube.Text("There is nothing to do.")), nil, nil
}

func (*problem) Evaluate(context.Context, *cube.Observation) (float64, cube.Info, error) {
	return 1, nil, nil
}

type taskConfig struct{ cube.TaskConfigBase[*metadata] }

func (*taskConfig) TypeName() string { return "many_cube.task.TaskConfig" }

func (c *taskConfig) Make(ctx context.Context, rc cube.RuntimeContext, b cube.ContainerBackend) (*cube.Task, error) {
	return c.Build(ctx, rc, b, &problem{}, &toolConfig{})
}

type config struct{ cube.BenchmarkConfigBase }

func (*config) TypeName() string { return "many_cube.benchmark.Config" }

func (*config) Definition() cube.Definition {
	tasks := make([]cube.Metadata, size())
	for i := range tasks {
		tasks[i] = &metadata{TaskMetadata: cube.TaskMetadata{ID: fmt.Sprintf("task-%05d", i)}}
	}
	return cube.Definition{
		Metadata:   &cube.BenchmarkMetadata{Name: "many-cube", Version: "1.0.0", Description: "Tasks that do nothing."},
		Tasks:      tasks,
		TaskConfig: &taskConfig{},
	}
}
