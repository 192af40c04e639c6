package cube_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/internal/democube"
)

// noopTool does nothing and allocates nothing.
type noopTool struct{ obs *cube.Observation }

func (*noopTool) Actions() []cube.ActionSchema { return nil }

func (n *noopTool) Execute(context.Context, cube.Action) (cube.Result, error) {
	return cube.Observed(n.obs), nil
}

func (*noopTool) Reset(context.Context) error { return nil }
func (*noopTool) Close(context.Context) error { return nil }

type noopProblem struct {
	cube.TaskBase[cube.Metadata]
}

func (*noopProblem) Reset(context.Context) (*cube.Observation, cube.Info, error) {
	return &cube.Observation{}, nil, nil
}

func (*noopProblem) Evaluate(context.Context, *cube.Observation) (float64, cube.Info, error) {
	return 1, nil, nil
}

func (*noopProblem) Finished(context.Context, *cube.Observation) (bool, error) { return false, nil }

func noopTask(b testing.TB, perStep bool) *cube.Task {
	b.Helper()
	p := &noopProblem{}
	p.Metadata = &cube.TaskMetadata{ID: "t"}
	p.ToolConfig = &scriptedConfig{tool: &noopTool{cube.Observe(cube.Text("x"))}}
	p.ValidatePerStep = perStep
	task, err := cube.NewTask(b.Context(), p)
	if err != nil {
		b.Fatal(err)
	}
	return task
}

// BenchmarkStep is the layer's own cost: at most 2 µs and 10 allocations.
func BenchmarkStep(b *testing.B) {
	for _, perStep := range []bool{false, true} {
		b.Run(fmt.Sprintf("evaluate=%v", perStep), func(b *testing.B) {
			task := noopTask(b, perStep)
			action := cube.NewAction("look")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := task.Step(b.Context(), action); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestStepAllocations(t *testing.T) {
	task := noopTask(t, true)
	action := cube.NewAction("look")
	n := testing.AllocsPerRun(100, func() {
		if _, err := task.Step(t.Context(), action); err != nil {
			t.Fatal(err)
		}
	})
	if n > 10 {
		t.Errorf("a step allocates %v times, more than 10", n)
	}
}

// BenchmarkTaskConfigRoundTrip writes and reads a task config: at most 20 µs.
func BenchmarkTaskConfigRoundTrip(b *testing.B) {
	reg := registry(b, cube.Options{})
	cfg := &democube.TaskConfig{Target: 3}
	cfg.Metadata = democube.NewMetadata("task-1")
	cfg.Metadata.Tags = []string{"a", "b"}
	cfg.Metadata.ContainerConfig = cube.NewContainerConfig("img:1")
	cfg.ToolConfig = democube.NewToolConfig()
	cfg.Seed = new(int64(7))
	b.ReportAllocs()
	for b.Loop() {
		data, err := cube.Marshal(cfg)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := cube.Load[cube.TaskConfig](reg, data); err != nil {
			b.Fatal(err)
		}
	}
}

// manyTasks is a benchmark whose tasks are in a file.
type manyTasks struct {
	cube.BenchmarkConfigBase
	files fstest.MapFS
}

func (*manyTasks) TypeName() string { return "test_cube.ManyTasks" }

func (m *manyTasks) Definition() cube.Definition {
	return cube.Definition{
		Metadata:   &cube.BenchmarkMetadata{Name: "many", Version: "1", Description: "d"},
		Files:      m.files,
		TaskConfig: &manyTaskConfig{},
	}
}

type manyTaskConfig struct{ democube.TaskConfig }

func (*manyTaskConfig) TypeName() string { return "test_cube.ManyTaskConfig" }

// BenchmarkTaskConfigs registers a benchmark with 10,000 tasks in a metadata
// file and makes all their configs: at most 100 ms.
func BenchmarkTaskConfigs(b *testing.B) {
	var file strings.Builder
	file.WriteString("[")
	for i := range 10_000 {
		if i > 0 {
			file.WriteString(",")
		}
		fmt.Fprintf(&file, `{"id":"task-%d","split":"train","abstract_description":"A task of many.","recommended_max_steps":20,"difficulty":"hard","tags":["a","b"],"weight":2.5,"_type":"demo_cube.defs.DemoTaskMetadata"}`, i)
	}
	file.WriteString("]")
	cfg := &manyTasks{files: fstest.MapFS{"task_metadata.json": {Data: []byte(file.String())}}}
	b.ReportAllocs()
	for b.Loop() {
		reg := registry(b, cube.Options{})
		if err := reg.Add(&manyTaskConfig{}, cfg); err != nil {
			b.Fatal(err)
		}
		sel, err := reg.Select(cfg)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for _, err := range sel.TaskConfigs() {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 10_000 {
			b.Fatalf("%d configs", n)
		}
	}
}
