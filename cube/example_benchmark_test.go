package cube_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/proctor-run/proctor/cube"
)

// Words is a benchmark whose tasks are in a metadata file, usually an embed.FS.
type Words struct {
	cube.BenchmarkConfigBase
}

func (*Words) TypeName() string { return "words_cube.benchmark.Words" }

func (*Words) Definition() cube.Definition {
	return cube.Definition{
		Metadata: &cube.BenchmarkMetadata{Name: "words", Version: "1", Description: "Words to repeat."},
		Files: fstest.MapFS{"task_metadata.json": {Data: []byte(`[
			{"_type": "words_cube.task.Word", "id": "short", "word": "go"},
			{"_type": "words_cube.task.Word", "id": "long", "word": "benchmark", "split": "train"}
		]`)}},
		TaskConfig: &WordConfig{},
	}
}

// Word is what is known of a task.
type Word struct {
	cube.TaskMetadata
	Word string `json:"word"`
}

func (*Word) TypeName() string { return "words_cube.task.Word" }

// WordConfig makes a task; its JSON is all that a worker needs.
type WordConfig struct {
	cube.TaskConfigBase[*Word]
}

func (*WordConfig) TypeName() string { return "words_cube.task.WordConfig" }

func (c *WordConfig) Make(ctx context.Context, rc cube.RuntimeContext, b cube.ContainerBackend) (*cube.Task, error) {
	return c.Build(ctx, rc, b, &repeat{}, &mouthConfig{})
}

// repeat is the problem.
type repeat struct {
	cube.TaskBase[*Word]
}

func (r *repeat) Reset(ctx context.Context) (*cube.Observation, cube.Info, error) {
	return cube.Observe(cube.Text("Say " + r.Metadata.Word + ".")), nil, r.Tool().Reset(ctx)
}

func (r *repeat) Evaluate(context.Context, *cube.Observation) (float64, cube.Info, error) {
	if mouth, _ := cube.Find[*mouth](r.Tool()); mouth.said != r.Metadata.Word {
		return 0, nil, nil
	}
	return 1, nil, nil
}

// A benchmark is registered with its types, narrowed, set up, and its tasks are
// spawned from their configs.
func ExampleRegistry_Select() {
	ctx := context.Background()
	reg := cube.NewRegistry(cube.Options{})
	if err := reg.Add(&Words{}, &Word{}, &WordConfig{}, &mouthConfig{}); err != nil {
		panic(err)
	}
	all, err := reg.Select(&Words{})
	if err != nil {
		panic(err)
	}
	training, err := all.Glob("split", "train")
	if err != nil {
		panic(err)
	}
	bench, err := training.Make(ctx, nil)
	if err != nil {
		panic(err)
	}
	defer func() { _ = bench.Close(ctx) }()
	for cfg, err := range bench.TaskConfigs() {
		if err != nil {
			panic(err)
		}
		text, _ := cube.Marshal(cfg)
		fmt.Println(string(text))

		task, err := bench.Spawn(ctx, cfg)
		if err != nil {
			panic(err)
		}
		out, err := task.Step(ctx, cube.NewAction("say", "word", "benchmark"), cube.Stop())
		if err != nil {
			panic(err)
		}
		fmt.Println(cfg.TaskID(), out.Reward)
		if err := task.Close(ctx); err != nil {
			panic(err)
		}
	}
	// Output:
	// {"metadata":{"id":"long","split":"train","abstract_description":"","recommended_max_steps":null,"container_config":null,"word":"benchmark","_type":"words_cube.task.Word"},"seed":null,"tool_config":null,"sub_bench_name":null,"_type":"words_cube.task.WordConfig"}
	// long 1
}
