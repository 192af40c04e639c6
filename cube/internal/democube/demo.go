// Package democube has the demo types that the recorded vectors of the task
// layer speak of: a counter task, two benchmarks, a backend. Tests only.
package democube

import (
	"context"
	"errors"
	"sync"

	"github.com/proctor-run/proctor/cube"
)

// Register adds the demo types. The benchmarks log to calls, which may be nil.
func Register(r *cube.Registry, calls *Log) error {
	return r.Add(&ToolConfig{}, &Metadata{}, &ExecutionInfo{}, &Backend{}, &Observation{}, &Seeds{},
		&Task{}, &TaskConfig{}, &OtherTaskConfig{}, &ConfigA{Calls: calls}, &ConfigB{Calls: calls})
}

// ToolConfig makes the demo tool.
type ToolConfig struct {
	Greeting string       `json:"greeting" default:"Hello"`
	Options  *cube.Object `json:"options" default:"{}"`
}

// TypeName is the name in the vectors.
func (*ToolConfig) TypeName() string { return "demo_cube.defs.DemoToolConfig" }

// NewToolConfig has the defaults.
func NewToolConfig() *ToolConfig {
	c := cube.Default[ToolConfig]()
	return &c
}

// Make builds the tool.
func (c *ToolConfig) Make(context.Context, cube.Container) (cube.Tool, error) {
	return NewTool(c.Greeting)
}

// Tool greets and counts.
type Tool struct {
	*cube.ActionTool
	greeting string
	N        int64
}

// NewTool returns a demo tool.
func NewTool(greeting string) (*Tool, error) {
	t := &Tool{greeting: greeting}
	type none struct{}
	var err error
	t.ActionTool, err = cube.NewActionTool("DemoTool",
		cube.Func("greet", "Greet someone.", func(_ context.Context, in struct {
			Name string `json:"name" desc:"Who."`
		}) (any, error) {
			return t.greeting + ", " + in.Name + "!", nil
		}),
		cube.Func("count", "Count.", func(_ context.Context, in struct {
			By int64 `json:"by" desc:"How far." default:"1"`
		}) (any, error) {
			t.N += in.By
			return t.N, nil
		}),
		cube.Func("silent", "Say nothing.", func(context.Context, none) (any, error) { return nil, nil }),
		cube.Func("fail", "Fail.", func(context.Context, none) (any, error) {
			return nil, cube.ValueErrorf("action failed")
		}),
		cube.Func("stats", "Tell all.", func(context.Context, none) (any, error) {
			return cube.Pairs("n", t.N, "ok", true, "ratio", 0.5, "none", nil, "list", []any{1, "a"}), nil
		}),
		cube.Func("raw", "Bytes.", func(context.Context, none) (any, error) { return []byte{1}, nil }),
		cube.Func("flag", "True.", func(context.Context, none) (any, error) { return true, nil }),
		cube.Func("number", "A number.", func(context.Context, none) (any, error) { return 2.5, nil }),
	)
	if err != nil {
		return nil, err
	}
	t.Reserve("hidden")
	return t, nil
}

// Reset starts counting anew.
func (t *Tool) Reset(context.Context) error {
	t.N = 0
	return nil
}

// Metadata is the demo metadata.
type Metadata struct {
	cube.TaskMetadata
	Difficulty string   `json:"difficulty" default:"easy"`
	Tags       []string `json:"tags" default:"[]"`
	Weight     float64  `json:"weight" default:"1.0"`
	Hard       bool     `json:"hard" default:"false"`
}

// TypeName is the name in the vectors.
func (*Metadata) TypeName() string { return "demo_cube.defs.DemoTaskMetadata" }

// NewMetadata has the defaults.
func NewMetadata(id string) *Metadata {
	m := cube.Default[Metadata]()
	m.ID = id
	return &m
}

// ExecutionInfo is the demo execution info.
type ExecutionInfo struct {
	cube.TaskExecutionInfo
	Problem string   `json:"problem"`
	Tests   []string `json:"tests" default:"[]"`
}

// TypeName is the name in the vectors.
func (*ExecutionInfo) TypeName() string { return "demo_cube.defs.DemoExecutionInfo" }

// Backend launches nothing.
type Backend struct {
	cube.ContainerBackendBase
	Region string `json:"region" default:"local"`
	Fail   bool   `json:"fail" default:"false"`
}

// TypeName is the name in the vectors.
func (*Backend) TypeName() string { return "demo_cube.defs.DemoBackend" }

// Launch fails.
func (*Backend) Launch(context.Context, *cube.ContainerConfig) (cube.Container, error) {
	return nil, errors.New("the demo backend launches nothing")
}

// Observation is a subtype of an observation.
type Observation struct {
	cube.Observation
	Note string `json:"note" default:""`
}

// TypeName is the name in the vectors.
func (*Observation) TypeName() string { return "demo_cube.defs.DemoObservation" }

// Seeds gives every task the same seeds.
type Seeds struct {
	List []int64 `json:"seeds" default:"[1, 2]"`
}

// TypeName is the name in the vectors.
func (*Seeds) TypeName() string { return "demo_cube.defs.DemoSeeds" }

// Seeds returns the list.
func (s *Seeds) Seeds(cube.Metadata) ([]int64, error) { return s.List, nil }

// Task counts to a target.
type Task struct {
	cube.TaskBase[*Metadata]
	Target int64 `json:"target" default:"3"`
}

// TypeName is the name in the vectors.
func (*Task) TypeName() string { return "demo_cube.defs.DemoTask" }

func (t *Task) n() int64 {
	tool, ok := cube.Find[*Tool](t.Tool())
	if !ok {
		return 0
	}
	return tool.N
}

// Reset resets the tool.
func (t *Task) Reset(ctx context.Context) (*cube.Observation, cube.Info, error) {
	if err := t.Tool().Reset(ctx); err != nil {
		return nil, nil, err
	}
	target := cube.Pairs("target", t.Target)
	v, err := cube.ValueOf(t.Target)
	if err != nil {
		return nil, nil, err
	}
	return cube.Observe(cube.Text("Count to " + v.(cube.Int).String() + ".")), target, nil
}

// Evaluate compares the counter with the target.
func (t *Task) Evaluate(context.Context, *cube.Observation) (float64, cube.Info, error) {
	info := cube.Pairs("n", t.n())
	if t.n() == t.Target {
		return 1, info, nil
	}
	return 0, info, nil
}

// Finished is when the target is reached.
func (t *Task) Finished(context.Context, *cube.Observation) (bool, error) {
	return t.n() >= t.Target, nil
}

// TaskConfig makes a Task.
type TaskConfig struct {
	cube.TaskConfigBase[*Metadata]
	Target int64 `json:"target" default:"3"`
}

// TypeName is the name in the vectors.
func (*TaskConfig) TypeName() string { return "demo_cube.defs.DemoTaskConfig" }

// Make builds the task.
func (c *TaskConfig) Make(ctx context.Context, rc cube.RuntimeContext, b cube.ContainerBackend) (*cube.Task, error) {
	return c.Build(ctx, rc, b, &Task{Target: c.Target}, NewToolConfig())
}

// OtherTaskConfig makes a Task of plain metadata.
type OtherTaskConfig struct {
	cube.TaskConfigBase[cube.Metadata]
	Extra string `json:"extra" default:"x"`
}

// TypeName is the name in the vectors.
func (*OtherTaskConfig) TypeName() string { return "demo_cube.defs.OtherTaskConfig" }

// Make builds a task of the same id.
func (c *OtherTaskConfig) Make(ctx context.Context, rc cube.RuntimeContext, b cube.ContainerBackend) (*cube.Task, error) {
	p := &Task{Target: 3}
	p.Metadata = NewMetadata(c.Metadata.Base().ID)
	p.ToolConfig = NewToolConfig()
	p.RuntimeContext, p.ContainerBackend = rc, b
	return cube.NewTask(ctx, p)
}

// Log collects calls.
type Log struct {
	mu    sync.Mutex
	lines []string
}

// Add notes a call.
func (l *Log) Add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

// Lines returns the calls so far.
func (l *Log) Lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string{}, l.lines...)
}

// Runtime sets a source and logs its end.
type Runtime struct {
	Source   string
	EndsAs   string
	Log      *Log
	SetupErr error
	CloseErr error
}

// Setup puts the source into the context.
func (r *Runtime) Setup(_ context.Context, s *cube.Setup) error {
	if r.SetupErr != nil {
		return r.SetupErr
	}
	return s.Set("source", r.Source)
}

// Close logs.
func (r *Runtime) Close(context.Context) error {
	if r.Log != nil {
		r.Log.Add("close " + r.EndsAs)
	}
	return r.CloseErr
}

// ConfigA is the demo benchmark of three tasks. Runtimes log to the Calls of the
// value that was registered.
type ConfigA struct {
	cube.BenchmarkConfigBase
	Calls *Log `json:"-"`
}

// TypeName is the name in the vectors.
func (*ConfigA) TypeName() string { return "demo_cube.defs.ConfigA" }

// Definition has the tasks.
func (c *ConfigA) Definition() cube.Definition {
	one, two, three := NewMetadata("task-1"), NewMetadata("task-2"), NewMetadata("other-3")
	one.Tags, one.Split = []string{"t1"}, "train"
	two.Difficulty, two.Tags, two.Weight, two.Hard = "hard", []string{"t1", "t2"}, 2.5, true
	three.RecommendedMaxSteps, three.ContainerConfig = new(7), cube.NewContainerConfig("img:1")
	return cube.Definition{
		Metadata: &cube.BenchmarkMetadata{Name: "bench-a", Version: "1", Description: "A", Tags: []string{"x", "y"},
			NumTasks:     3,
			NamedSubsets: cube.MapOf([]string{"easy", "none"}, [][2]string{{"difficulty", "easy"}, {"difficulty", "zzz"}})},
		Tasks:      []cube.Metadata{one, two, three},
		TaskConfig: &TaskConfig{},
		Runtime:    func() cube.Runtime { return &Runtime{Source: "A", EndsAs: "A", Log: c.Calls} },
	}
}

// ConfigB is the demo benchmark of one plain task.
type ConfigB struct {
	cube.BenchmarkConfigBase
	Calls *Log `json:"-"`
}

// TypeName is the name in the vectors.
func (*ConfigB) TypeName() string { return "demo_cube.defs.ConfigB" }

// Definition has the task.
func (c *ConfigB) Definition() cube.Definition {
	return cube.Definition{
		Metadata:   &cube.BenchmarkMetadata{Name: "bench-b", Version: "1", Description: "B", Tags: []string{"y", "b"}, NumTasks: 1},
		Tasks:      []cube.Metadata{&cube.TaskMetadata{ID: "task-1", Split: "test"}},
		TaskConfig: &OtherTaskConfig{},
		Runtime:    func() cube.Runtime { return &Runtime{Source: "B", EndsAs: "B", Log: c.Calls} },
	}
}
