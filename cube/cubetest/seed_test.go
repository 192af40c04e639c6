package cubetest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubetest"
)

// A cube whose answers depend on the seed of each task's config.

type seedMetadata struct{ cube.TaskMetadata }

func (*seedMetadata) TypeName() string { return "seed_cube.Metadata" }

type seedTask struct {
	cube.TaskBase[*seedMetadata]
	seed int64
}

func seedWord(seed int64) string { return fmt.Sprintf("word-%d", seed%1000) }

func (t *seedTask) Reset(ctx context.Context) (*cube.Observation, cube.Info, error) {
	return cube.Observe(cube.Text(fmt.Sprintf("Say the word of %d.", t.seed))), nil, t.Tool().Reset(ctx)
}

func (t *seedTask) Evaluate(context.Context, *cube.Observation) (float64, cube.Info, error) {
	if tool, _ := cube.Find[*brokenTool](t.Tool()); tool.said != seedWord(t.seed) {
		return 0, nil, nil
	}
	return 1, nil, nil
}

type seedTaskConfig struct {
	cube.TaskConfigBase[*seedMetadata]
}

func (*seedTaskConfig) TypeName() string { return "seed_cube.TaskConfig" }

func (c *seedTaskConfig) Make(ctx context.Context, rc cube.RuntimeContext, b cube.ContainerBackend) (*cube.Task, error) {
	return c.Build(ctx, rc, b, &seedTask{seed: *c.Seed}, &brokenToolConfig{})
}

type seedConfig struct{ cube.BenchmarkConfigBase }

func (*seedConfig) TypeName() string { return "seed_cube.Config" }

func (*seedConfig) Definition() cube.Definition {
	return cube.Definition{
		Metadata:   &cube.BenchmarkMetadata{Name: "seed-cube", Version: "1", Description: "d"},
		Tasks:      []cube.Metadata{&seedMetadata{cube.TaskMetadata{ID: "word"}}},
		TaskConfig: &seedTaskConfig{},
	}
}

// TestSeededCube: the debug agent knows the seed of the task that it plays.
func TestSeededCube(t *testing.T) {
	t.Parallel()
	cfg := &seedConfig{}
	cfg.SeedGenerator = &cube.BasicSeedGenerator{NSeed: 3, MetaSeed: 7}
	cubetest.Run(t, cubetest.Subject{
		Register: func(r *cube.Registry) error {
			return r.Add(&seedMetadata{}, &brokenToolConfig{}, &seedTaskConfig{}, &seedConfig{})
		},
		Config: cfg,
		Agent: func(task cube.TaskConfig) cube.Agent {
			return cube.Script(cube.NewAction("say", "word", seedWord(*task.Common().Seed)))
		},
		Options: cube.Options{CacheRoot: t.TempDir()},
	})
}
