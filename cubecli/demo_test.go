package cubecli_test

import (
	"context"
	"fmt"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubes/textfiles"
	"github.com/proctor-run/proctor/cube/infra"
	"github.com/proctor-run/proctor/cubecli"
)

// guess is a cube of three tasks, each solved by guessing its number. A test
// changes what it is about.
type guess struct {
	name  string                      // of the benchmark; empty means "guess"
	setup func(context.Context) error // of its runtime; nil means that there is none
	act   func() error                // of the action; nil does nothing
	score float64                     // of every task; 0 means that of the guess
	seeds cube.SeedGenerator          // nil for none
	needs []infra.Resource            // of the benchmark
}

func (g guess) benchmark() *guessConfig {
	if g.name == "" {
		g.name = "guess"
	}
	c := &guessConfig{guess: g}
	c.SeedGenerator, c.Resources = g.seeds, g.needs
	return c
}

func (g guess) register(r *cube.Registry) error {
	return r.Add(&numberMetadata{}, &guessToolConfig{act: g.act}, &numberConfig{guess: g}, g.benchmark())
}

// cube is the benchmark for a program; its agent knows the numbers.
func (g guess) cube() cubecli.Cube {
	return cubecli.Cube{
		Name: "guess", Register: g.register, Agent: solve,
		Config: func(cube.ContainerBackend) cube.BenchmarkConfig { return g.benchmark() },
	}
}

// containers is a cube whose tasks run in containers.
func containers() cubecli.Cube {
	return cubecli.Cube{
		Name: "textfiles-cube", Register: textfiles.Register, Agent: textfiles.Agent, NeedsContainer: true,
		Config: func(b cube.ContainerBackend) cube.BenchmarkConfig { return textfiles.NewConfig(b) },
	}
}

func solve(task cube.TaskConfig) cube.Agent {
	return cube.Script(cube.NewAction("guess", "n", task.TaskMetadata().(*numberMetadata).Number))
}

func wrong(cube.TaskConfig) cube.Agent { return cube.Script(cube.NewAction("guess", "n", -1)) }

type numberMetadata struct {
	cube.TaskMetadata
	Number int64  `json:"number"`
	Level  string `json:"level"`
}

func (*numberMetadata) TypeName() string { return "guess.task.Metadata" }

func number(id string, n int64, level string) *numberMetadata {
	return &numberMetadata{TaskMetadata: cube.TaskMetadata{ID: id}, Number: n, Level: level}
}

func numbers() []cube.Metadata {
	return []cube.Metadata{number("one", 1, "easy"), number("two", 2, "easy"), number("many", 1000, "hard")}
}

type guessToolConfig struct {
	act func() error
}

func (*guessToolConfig) TypeName() string { return "guess.tool.ToolConfig" }

func (c *guessToolConfig) Make(context.Context, cube.Container) (cube.Tool, error) {
	t := &guessTool{}
	var err error
	t.ActionTool, err = cube.NewActionTool("GuessTool", cube.Func("guess", "Guess.", func(_ context.Context, in struct {
		N int64 `json:"n" desc:"The number."`
	}) (any, error) {
		t.last = in.N
		if c.act != nil {
			return nil, c.act()
		}
		return fmt.Sprintf("guessed %d", in.N), nil
	}))
	return t, err
}

type guessTool struct {
	*cube.ActionTool
	last int64
}

func (t *guessTool) Reset(context.Context) error { t.last = 0; return nil }

type guessProblem struct {
	cube.TaskBase[*numberMetadata]
	score float64
}

func (p *guessProblem) Reset(ctx context.Context) (*cube.Observation, cube.Info, error) {
	return cube.Observe(cube.Text("Guess.")), nil, p.Tool().Reset(ctx)
}

func (p *guessProblem) Evaluate(context.Context, *cube.Observation) (float64, cube.Info, error) {
	if p.score != 0 {
		return p.score, nil, nil
	}
	if t, ok := cube.Find[*guessTool](p.Tool()); ok && t.last == p.Metadata.Number {
		return 1, nil, nil
	}
	return 0, nil, nil
}

// numberConfig has the guess of the benchmark that made it.
type numberConfig struct {
	cube.TaskConfigBase[*numberMetadata]
	guess guess
}

func (*numberConfig) TypeName() string { return "guess.task.TaskConfig" }

func (c *numberConfig) Make(ctx context.Context, rc cube.RuntimeContext, b cube.ContainerBackend) (*cube.Task, error) {
	return c.Build(ctx, rc, b, &guessProblem{score: c.guess.score}, &guessToolConfig{act: c.guess.act})
}

type guessConfig struct {
	cube.BenchmarkConfigBase
	guess guess
}

func (*guessConfig) TypeName() string { return "guess.benchmark.Config" }

func (c *guessConfig) ConfigureTask(cfg cube.TaskConfig) error {
	if own, ok := cfg.(*numberConfig); ok {
		own.guess = c.guess
	}
	return nil
}

func (c *guessConfig) Definition() cube.Definition {
	d := cube.Definition{
		Metadata: &cube.BenchmarkMetadata{
			Name: c.guess.name, Version: "1", Description: "Numbers to guess.",
			NamedSubsets: cube.MapOf([]string{"simple", "tough"}, [][2]string{{"level", "easy"}, {"level", "hard"}}),
		},
		Tasks: numbers(), TaskConfig: &numberConfig{},
	}
	if c.guess.setup != nil {
		d.Runtime = func() cube.Runtime { return runtime{c.guess.setup} }
	}
	return d
}

type runtime struct{ setup func(context.Context) error }

func (r runtime) Setup(ctx context.Context, _ *cube.Setup) error { return r.setup(ctx) }
func (runtime) Close(context.Context) error                      { return nil }
