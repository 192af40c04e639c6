// Package cube is a benchmark of one's own: agents count the letters of a word.
// Program makes a command of it.
package cube

import (
	"context"
	"fmt"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubes/arithmetic"
	"github.com/proctor-run/proctor/cube/infra"
	"github.com/proctor-run/proctor/cube/protocol"
	"github.com/proctor-run/proctor/cube/shell"
	"github.com/proctor-run/proctor/cubecli"
	"github.com/proctor-run/proctor/sandbox"
)

// Cube is the benchmark for command lines; a program of it is
//
//	func main() { cubecli.Main(Cube()) }
func Cube() cubecli.Cube {
	return cubecli.Cube{
		Name: "letters", Register: Register, Agent: Solve,
		Config: func(cube.ContainerBackend) cube.BenchmarkConfig { return &Config{} },
	}
}

// Register adds the cube's types to a registry.
func Register(r *cube.Registry) error {
	return r.Add(&Metadata{}, &ToolConfig{}, &TaskConfig{}, &Config{})
}

// Mixed is a composite of this cube and one of proctor's.
func Mixed() cube.BenchmarkConfig {
	return cube.NewComposite("mixed", &Config{}, &arithmetic.Config{})
}

// Solve makes the agent that knows the answer of a task.
func Solve(task cube.TaskConfig) cube.Agent {
	m, ok := task.TaskMetadata().(*Metadata)
	if !ok {
		return arithmetic.Agent(task)
	}
	return cube.Script(cube.NewAction("answer", "letters", len([]rune(m.Word))))
}

// Metadata is what is known of a task before it is made.
type Metadata struct {
	cube.TaskMetadata
	Word string `json:"word"`
}

// TypeName is what documents call the type.
func (*Metadata) TypeName() string { return "letters.task.Metadata" }

// ToolConfig makes the tool: one action, made of a typed function.
type ToolConfig struct{}

// TypeName is what documents call the type.
func (*ToolConfig) TypeName() string { return "letters.tool.ToolConfig" }

// Make makes the tool.
func (*ToolConfig) Make(context.Context, cube.Container) (cube.Tool, error) {
	t := &tool{}
	var err error
	t.ActionTool, err = cube.NewActionTool("LettersTool",
		cube.Func("answer", "Say how many letters the word has.", func(_ context.Context, in struct {
			Letters int `json:"letters" desc:"The number of letters."`
		}) (any, error) {
			t.answer = in.Letters
			return "noted", nil
		}))
	return t, err
}

type tool struct {
	*cube.ActionTool
	answer int
}

func (t *tool) Reset(context.Context) error { t.answer = 0; return nil }

// problem is a task's behaviour: how it begins and how it is scored.
type problem struct{ cube.TaskBase[*Metadata] }

func (p *problem) Reset(ctx context.Context) (*cube.Observation, cube.Info, error) {
	return cube.Observe(cube.Text(fmt.Sprintf("How many letters has %q?", p.Metadata.Word))), nil, p.Tool().Reset(ctx)
}

func (p *problem) Evaluate(context.Context, *cube.Observation) (float64, cube.Info, error) {
	t, _ := cube.Find[*tool](p.Tool())
	if t.answer != len([]rune(p.Metadata.Word)) {
		return 0, cube.Pairs("answer", t.answer), nil
	}
	return 1, cube.Pairs("answer", t.answer), nil
}

// TaskConfig makes a task; its JSON is all that a worker needs.
type TaskConfig struct{ cube.TaskConfigBase[*Metadata] }

// TypeName is what documents call the type.
func (*TaskConfig) TypeName() string { return "letters.task.TaskConfig" }

// Make makes the task.
func (c *TaskConfig) Make(ctx context.Context, rc cube.RuntimeContext, b cube.ContainerBackend) (*cube.Task, error) {
	return c.Build(ctx, rc, b, &problem{}, &ToolConfig{})
}

// Config is the benchmark.
type Config struct{ cube.BenchmarkConfigBase }

// TypeName is what documents call the type.
func (*Config) TypeName() string { return "letters.benchmark.Config" }

// Definition is what the benchmark consists of.
func (*Config) Definition() cube.Definition {
	word := func(w string) *Metadata { return &Metadata{TaskMetadata: cube.TaskMetadata{ID: w}, Word: w} }
	return cube.Definition{
		Metadata:   &cube.BenchmarkMetadata{Name: "letters", Version: "1.0.0", Description: "Words to count."},
		Tasks:      []cube.Metadata{word("cat"), word("naïve")},
		TaskConfig: &TaskConfig{},
	}
}

// Shell is the tool of tasks that run in a container, on a sandbox that runs
// already.
func Shell(ctx context.Context, sb sandbox.Sandbox) (cube.Tool, error) {
	return shell.NewBashToolConfig().Make(ctx, infra.SandboxContainer(sb))
}

// Find is what a server answers a request for a task with: what is known of it, or
// the error that clients of CUBE know.
func Find(sel *cube.Selection, id string) (cube.Metadata, error) {
	entries, err := sel.Tasks()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.ID == id {
			return e.Metadata, nil
		}
	}
	return nil, protocol.TaskNotFound(id)
}
