package cube_test

import (
	"context"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/internal/democube"
)

// seededProblem scores with its seed.
type seededProblem struct {
	cube.TaskBase[*democube.Metadata]
}

func (*seededProblem) TypeName() string { return "seeded_cube.Task" }

func (*seededProblem) Reset(context.Context) (*cube.Observation, cube.Info, error) {
	return cube.Observe(cube.Text("A number.")), nil, nil
}

func (p *seededProblem) Evaluate(context.Context, *cube.Observation) (float64, cube.Info, error) {
	if p.Seed == nil {
		return 0, nil, nil
	}
	return float64(*p.Seed), nil, nil
}

type seededTask struct {
	cube.TaskConfigBase[*democube.Metadata]
	problem *seededProblem
}

func (*seededTask) TypeName() string { return "seeded_cube.TaskConfig" }

func (c *seededTask) Make(ctx context.Context, rc cube.RuntimeContext, b cube.ContainerBackend) (*cube.Task, error) {
	return c.Build(ctx, rc, b, c.problem, democube.NewToolConfig())
}

// TestProblemsKnowTheirSeed: Build hands the config's seed on, a problem cannot
// change the config by it, and the task's document has none.
func TestProblemsKnowTheirSeed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		seed *int64
		want float64
	}{{"seven", new(int64(7)), 7}, {"none", nil, 0}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := &seededProblem{}
			p.Seed = new(int64(99)) // of an earlier task
			cfg := &seededTask{problem: p}
			cfg.Metadata, cfg.Seed = democube.NewMetadata("one"), c.seed
			task, err := registry(t, cube.Options{}).MakeTask(t.Context(), cfg, cube.RuntimeContext{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = task.Close(t.Context()) }()
			if reward, _, err := p.Evaluate(t.Context(), nil); err != nil || reward != c.want {
				t.Errorf("the problem's seed is %v, %v; want %v", reward, err, c.want)
			}
			if c.seed != nil {
				if *p.Seed = 8; *cfg.Seed != 7 {
					t.Errorf("the config's seed became %d", *cfg.Seed)
				}
			}
			if text := marshal(t, p); strings.Contains(strings.ToLower(text), "seed\"") {
				t.Errorf("the task's document has a seed: %s", text)
			}
		})
	}
}
