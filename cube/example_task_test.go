package cube_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/proctor-run/proctor/cube"
)

// A guess is a problem: its Reset states the objective, its Evaluate scores.
// What it says about itself is in the embedded data.
type guess struct {
	cube.TaskBase[cube.Metadata]
}

func (g *guess) Reset(ctx context.Context) (*cube.Observation, cube.Info, error) {
	if err := g.Tool().Reset(ctx); err != nil {
		return nil, nil, err
	}
	return cube.Observe(cube.Text("Say the name of a colour.")), nil, nil
}

func (g *guess) Evaluate(context.Context, *cube.Observation) (float64, cube.Info, error) {
	mouth, _ := cube.Find[*mouth](g.Tool())
	if strings.Contains("red green blue", mouth.said) && mouth.said != "" {
		return 1, cube.Pairs("said", mouth.said), nil
	}
	return 0, cube.Pairs("said", mouth.said), nil
}

// Finished is an optional hook: the task ends with the first word.
func (g *guess) Finished(context.Context, *cube.Observation) (bool, error) {
	mouth, _ := cube.Find[*mouth](g.Tool())
	return mouth.said != "", nil
}

// mouth is the tool, mouthConfig makes it.
type mouth struct {
	*cube.ActionTool
	said string
}

type mouthConfig struct{}

func (*mouthConfig) TypeName() string { return "colour_cube.tool.MouthConfig" }

func (*mouthConfig) Make(context.Context, cube.Container) (cube.Tool, error) {
	m := &mouth{}
	var err error
	m.ActionTool, err = cube.NewActionTool("Mouth",
		cube.Func("say", "Say a word.", func(_ context.Context, in struct {
			Word string `json:"word" desc:"The word."`
		}) (any, error) {
			m.said = in.Word
			return "You said " + in.Word + ".", nil
		}))
	return m, err
}

// A task is set up, reset, stepped until it is done, and closed.
func ExampleTask() {
	ctx := context.Background()
	problem := &guess{}
	problem.Metadata = &cube.TaskMetadata{ID: "colour"}
	problem.ToolConfig = &mouthConfig{}
	task, err := cube.NewTask(ctx, problem)
	if err != nil {
		panic(err)
	}
	defer func() { _ = task.Close(ctx) }()

	obs, _, err := task.Reset(ctx)
	if err != nil {
		panic(err)
	}
	text, _ := obs.Markdown()
	fmt.Println(text)

	out, err := task.Step(ctx, cube.NewAction("say", "word", "green"))
	if err != nil {
		panic(err)
	}
	text, _ = out.Obs.Markdown()
	fmt.Println(text)
	fmt.Println("done:", out.Done, "reward:", out.Reward)
	// Output:
	// Say the name of a colour.
	// You said green.
	// done: true reward: 1
}
