// Package arithmetic is the smallest useful cube: an agent is asked a sum and
// submits the answer. It needs no container. Copy it to begin a cube of your own.
package arithmetic

import (
	"context"
	"fmt"

	"github.com/proctor-run/proctor/cube"
)

// Register adds the cube's types.
func Register(r *cube.Registry) error {
	return r.Add(&Metadata{}, &toolConfig{}, &task{}, &taskConfig{}, &Config{})
}

// Metadata is one sum.
type Metadata struct {
	cube.TaskMetadata
	A        int64  `json:"a"`
	B        int64  `json:"b"`
	Op       string `json:"op" enum:"+,-,*"`
	Expected int64  `json:"expected"`
}

// TypeName is the name of the type in documents.
func (*Metadata) TypeName() string { return "arithmetic_cube.task.ArithmeticTaskMetadata" }

// toolConfig makes the tool with which an answer is submitted.
type toolConfig struct{}

// TypeName is the name of the type in documents.
func (*toolConfig) TypeName() string { return "arithmetic_cube.tool.ArithmeticToolConfig" }

// Make builds the tool.
func (*toolConfig) Make(context.Context, cube.Container) (cube.Tool, error) {
	t := &tool{}
	var err error
	t.ActionTool, err = cube.NewActionTool("ArithmeticTool",
		cube.Func("submit_answer", "Submit the final answer.", t.submit))
	return t, err
}

// tool remembers the last answer; nil means that there is none.
type tool struct {
	*cube.ActionTool
	answer cube.Value
}

func (t *tool) Reset(context.Context) error {
	t.answer = nil
	return nil
}

// answer is what submit_answer takes. It is a Value, so that an answer of
// another kind is a wrong answer and not an error.
type answer struct {
	Answer cube.Value `json:"answer" type:"int" desc:"The result, an integer."`
}

func (t *tool) submit(_ context.Context, in answer) (any, error) {
	t.answer = in.Answer
	return fmt.Sprintf("Answer %s submitted.", cube.PythonText(in.Answer)), nil
}

// task asks for one result.
type task struct {
	cube.TaskBase[*Metadata]
}

// TypeName is the name of the type in documents.
func (*task) TypeName() string { return "arithmetic_cube.task.SolveArithmeticTask" }

// Reset asks the question.
func (t *task) Reset(ctx context.Context) (*cube.Observation, cube.Info, error) {
	if err := t.Tool().Reset(ctx); err != nil {
		return nil, nil, err
	}
	m := t.Metadata
	question := fmt.Sprintf("What is %d %s %d?", m.A, m.Op, m.B)
	return cube.Observe(cube.Text(question)), cube.Pairs("question", question, "expected", m.Expected), nil
}

// Evaluate gives 1 for the right answer.
func (t *task) Evaluate(context.Context, *cube.Observation) (float64, cube.Info, error) {
	submitted := t.answer()
	correct := equals(submitted, t.Metadata.Expected)
	info := cube.Pairs("answer", submitted, "expected", t.Metadata.Expected, "correct", correct)
	if correct {
		return 1, info, nil
	}
	return 0, info, nil
}

// Finished is when an answer was submitted, right or wrong.
func (t *task) Finished(context.Context, *cube.Observation) (bool, error) {
	return t.answer() != nil, nil
}

// answer returns what was submitted; a submitted null is no answer.
func (t *task) answer() cube.Value {
	tool, ok := cube.Find[*tool](t.Tool())
	if !ok || tool.answer == (cube.Null{}) {
		return nil
	}
	return tool.answer
}

// equals compares as numbers: 7.0 is 7, "7" is not.
func equals(v cube.Value, want int64) bool {
	switch v := v.(type) {
	case cube.Int:
		n, ok := v.Int64()
		return ok && n == want
	case cube.Float:
		return float64(v) == float64(want)
	case cube.Bool:
		return bool(v) && want == 1 || !bool(v) && want == 0
	}
	return false
}

// taskConfig makes a Task.
type taskConfig struct {
	cube.TaskConfigBase[*Metadata]
}

// TypeName is the name of the type in documents.
func (*taskConfig) TypeName() string { return "arithmetic_cube.task.ArithmeticTaskConfig" }

// Make sets the task up.
func (c *taskConfig) Make(ctx context.Context, rc cube.RuntimeContext, b cube.ContainerBackend) (*cube.Task, error) {
	return c.Build(ctx, rc, b, &task{}, &toolConfig{})
}

// Config selects among the sums.
type Config struct {
	cube.BenchmarkConfigBase
}

// TypeName is the name of the type in documents.
func (*Config) TypeName() string { return "arithmetic_cube.benchmark.ArithmeticBenchmarkConfig" }

// Definition lists the sums.
func (*Config) Definition() cube.Definition {
	return cube.Definition{
		Metadata: &cube.BenchmarkMetadata{
			Name:        "arithmetic-cube",
			Version:     "0.1.0",
			Description: "Sums of two numbers, as an example of a cube.",
			NumTasks:    4,
			Tags:        []string{"example", "arithmetic"},
		},
		Tasks: []cube.Metadata{
			sum("add-3-4", 3, "+", 4, 7),
			sum("sub-10-3", 10, "-", 3, 7),
			sum("mul-6-7", 6, "*", 7, 42),
			sum("add-100-1", 100, "+", 1, 101),
		},
		TaskConfig: &taskConfig{},
	}
}

func sum(id string, a int64, op string, b, expected int64) *Metadata {
	return &Metadata{
		TaskMetadata: cube.TaskMetadata{ID: id, RecommendedMaxSteps: new(2)},
		A:            a, B: b, Op: op, Expected: expected,
	}
}
