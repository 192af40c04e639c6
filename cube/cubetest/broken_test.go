package cubetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubes/arithmetic"
	"github.com/proctor-run/proctor/cube/cubetest"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// One cube that can be broken in one way per check. The task is to say a word;
// the fault is in the task's metadata.

type brokenMetadata struct {
	cube.TaskMetadata
	Fault string `json:"fault"`
	local bool   // does not reach a worker
}

func (*brokenMetadata) TypeName() string { return "broken_cube.Metadata" }

type brokenToolConfig struct {
	Fault string `json:"fault" default:""`
}

func (*brokenToolConfig) TypeName() string { return "broken_cube.ToolConfig" }

func (c *brokenToolConfig) Make(context.Context, cube.Container) (cube.Tool, error) {
	t := &brokenTool{fault: c.Fault}
	say := cube.Func("say", "Say a word.", func(_ context.Context, in struct {
		Word string `json:"word" desc:"The word."`
	}) (any, error) {
		t.said = in.Word
		return "said", nil
	})
	if c.Fault == "action-set" {
		say = cube.Func("say", "Say a word.", func(_ context.Context, in struct {
			Word string `json:"word"` // nothing tells what it is
		}) (any, error) {
			t.said = in.Word
			return "said", nil
		})
	}
	var err error
	t.ActionTool, err = cube.NewActionTool("BrokenTool", say)
	return t, err
}

type brokenTool struct {
	*cube.ActionTool
	fault string
	said  string
}

func (t *brokenTool) Reset(context.Context) error {
	if t.fault != "reset" {
		t.said = ""
	}
	return nil
}

func (t *brokenTool) Execute(ctx context.Context, a cube.Action) (cube.Result, error) {
	if t.fault == "unknown-action" && a.Name != "say" {
		return cube.Observed(cube.Observe(cube.Text("whatever"))), nil
	}
	return t.ActionTool.Execute(ctx, a)
}

type brokenTask struct {
	cube.TaskBase[*brokenMetadata]
	shared *brokenShared
	evals  int
	scored int
	closed int
}

// brokenShared is what one registration of the cube has in memory.
type brokenShared struct {
	setup *cube.Setup
	tasks atomic.Int64
}

func (t *brokenTask) fault() string { return t.Metadata.Fault }

func (t *brokenTask) Reset(ctx context.Context) (*cube.Observation, cube.Info, error) {
	if err := t.Tool().Reset(ctx); err != nil {
		return nil, nil, err
	}
	switch t.fault() {
	case "reset-text":
		return cube.Observe(cube.Structure([]any{"say hello"})), nil, nil
	case "reset-reproducible":
		return cube.Observe(cube.Text(fmt.Sprintf("Say hello. (%d)", t.shared.tasks.Add(1)))), nil, nil
	case "parallel":
		_ = t.shared.setup.Set("latest", t.Metadata.ID)
	}
	return cube.Observe(cube.Text("Say hello.")), nil, nil
}

func (t *brokenTask) Evaluate(_ context.Context, obs *cube.Observation) (float64, cube.Info, error) {
	tool, _ := cube.Find[*brokenTool](t.Tool())
	t.evals++
	switch {
	case t.fault() == "final-reward" && tool.said != "":
		if obs == nil {
			return 0, nil, nil
		}
		if t.scored++; t.scored > 1 {
			return 0, nil, nil
		}
		return 1, nil, nil
	case t.fault() == "evaluate-pure":
		return 0, cube.Pairs("evaluations", t.evals), nil
	case t.fault() == "stop" && tool.said == "" && obs != nil:
		return 0, nil, cube.ValueErrorf("nothing was said")
	case t.fault() == "step-output" && tool.said != "":
		return 0, cube.Pairs("text", "\xed\xa0\x80"), nil // a lone surrogate
	case t.fault() == "debug-episode" || tool.said == "hello":
		return 1, nil, nil
	}
	return 0, nil, nil
}

func (t *brokenTask) Finished(context.Context, *cube.Observation) (bool, error) {
	tool, _ := cube.Find[*brokenTool](t.Tool())
	return tool.said != "", nil
}

func (t *brokenTask) PrivilegedInfo(context.Context) (cube.Content, error) {
	if t.fault() == "privileged-info" {
		return &cube.AudioContent{Data: "hello"}, nil
	}
	return cube.Text("hello"), nil
}

func (t *brokenTask) Close(context.Context) error {
	if t.closed++; t.closed > 1 && t.fault() == "close" {
		return cube.RuntimeErrorf("closed before")
	}
	return nil
}

// misspelt has a hook that nobody calls: its signature is another.
type misspelt struct{ brokenTask }

func (*misspelt) Finished() bool { return false }

type brokenTaskConfig struct {
	cube.TaskConfigBase[*brokenMetadata]
}

func (*brokenTaskConfig) TypeName() string { return "broken_cube.TaskConfig" }

// sharedOf finds what the cube keeps in memory, as a cube with a global would.
var sharedOf sync.Map

func (c *brokenTaskConfig) Make(ctx context.Context, rc cube.RuntimeContext, b cube.ContainerBackend) (*cube.Task, error) {
	key := rc.String("shared")
	known, _ := sharedOf.Load(key)
	shared, _ := known.(*brokenShared)
	if c.Metadata.Fault == "task-configs" && !c.Metadata.local {
		return nil, cube.RuntimeErrorf("this works only where the benchmark is")
	}
	if c.Metadata.Fault == "hook-signature" {
		return c.Build(ctx, rc, b, &misspelt{brokenTask{shared: shared}}, &brokenToolConfig{})
	}
	if c.Metadata.Fault != "construction" {
		return c.Build(ctx, rc, b, &brokenTask{shared: shared}, &brokenToolConfig{Fault: c.Metadata.Fault})
	}
	helper, err := b.Launch(ctx, cube.NewContainerConfig("x"))
	if err != nil {
		return nil, err
	}
	t, err := c.Build(ctx, rc, b, &brokenTask{shared: shared}, &brokenToolConfig{})
	if err != nil {
		return nil, err // and the helper stays
	}
	return t, helper.Stop(ctx)
}

type brokenRuntime struct {
	key    string
	shared *brokenShared
}

func (r *brokenRuntime) Setup(_ context.Context, s *cube.Setup) error {
	r.shared.setup = s
	return s.Set("shared", r.key)
}

func (r *brokenRuntime) Close(context.Context) error { return nil }

type brokenConfig struct {
	cube.BenchmarkConfigBase
	fault string
	sound int // tasks without a fault
}

func (*brokenConfig) TypeName() string { return "broken_cube.Config" }

func (c *brokenConfig) Definition() cube.Definition {
	shared := &brokenShared{}
	key := fmt.Sprintf("%p", shared)
	sharedOf.Store(key, shared)
	return cube.Definition{
		Metadata:   &cube.BenchmarkMetadata{Name: "broken-cube", Version: "1", Description: "d"},
		Tasks:      c.tasks(),
		TaskConfig: &brokenTaskConfig{},
		Runtime:    func() cube.Runtime { return &brokenRuntime{key, shared} },
	}
}

// tasks are the one with the fault, behind sound ones.
func (c *brokenConfig) tasks() (tasks []cube.Metadata) {
	for i := range c.sound {
		tasks = append(tasks, &brokenMetadata{TaskMetadata: cube.TaskMetadata{ID: fmt.Sprint("sound-", i)}, local: true})
	}
	return append(tasks, &brokenMetadata{TaskMetadata: cube.TaskMetadata{ID: "hello"}, Fault: c.fault, local: true})
}

func (c *brokenConfig) Install(_ context.Context, cache *cube.Cache) error {
	if c.fault == "install" && cache.Has("hello") {
		return cube.RuntimeErrorf("already installed")
	}
	return cache.Store("hello", &cube.TaskExecutionInfo{})
}

func (c *brokenConfig) Uninstall(_ context.Context, cache *cube.Cache) error {
	if c.fault == "install-leftover" {
		return nil
	}
	return cache.Clear()
}

// forgetfulConfig has a field that no worker ever sees.
type forgetfulConfig struct {
	brokenConfig
	Limit int
}

func (*forgetfulConfig) TypeName() string { return "broken_cube.ForgetfulConfig" }

func brokenSubject(t *testing.T, fault string, sound int) cubetest.Subject {
	t.Helper()
	backend := fake.New(fake.Config{Dir: t.TempDir()})
	var cfg cube.BenchmarkConfig
	base := brokenConfig{fault: fault, sound: sound}
	if fault == "construction" {
		base.ContainerBackend = cube.NewLocalContainerBackend(backend)
	}
	cfg = &base
	if fault == "registered" {
		cfg = &forgetfulConfig{brokenConfig: base}
	}
	return cubetest.Subject{
		Register: func(r *cube.Registry) error {
			return r.Add(&brokenMetadata{}, &brokenToolConfig{}, &brokenTaskConfig{}, cfg)
		},
		Config:  cfg,
		Agent:   func(cube.TaskConfig) cube.Agent { return cube.Script(cube.NewAction("say", "word", "hello")) },
		Options: cube.Options{CacheRoot: t.TempDir(), Sandbox: backend},
	}
}

func TestBrokenCubes(t *testing.T) {
	t.Parallel()
	// Which check finds which fault, and which others it also breaks.
	cases := []struct {
		fault, check string
		also         []string
	}{
		{fault: "registered", check: "registered"},
		{fault: "task-configs", check: "task-configs"},
		{fault: "construction", check: "construction"},
		{fault: "hook-signature", check: "construction"},
		{fault: "reset", check: "reset"},
		{fault: "reset-text", check: "reset"},
		{fault: "reset-reproducible", check: "reset-reproducible"},
		{fault: "action-set", check: "action-set"},
		{fault: "unknown-action", check: "unknown-action"},
		{fault: "stop", check: "stop", also: []string{"debug-episode"}},
		{fault: "step-output", check: "step-output", also: []string{"debug-episode", "parallel"}},
		{fault: "evaluate-pure", check: "evaluate-pure", also: []string{"reset", "debug-episode", "parallel"}},
		{fault: "final-reward", check: "evaluate-pure"},
		{fault: "debug-episode", check: "debug-episode"},
		{fault: "close", check: "close"},
		{fault: "privileged-info", check: "privileged-info"},
		{fault: "parallel", check: "parallel"},
		{fault: "install", check: "install", also: cubetest.Checks()}, // each installs
		{fault: "install-leftover", check: "install"},
	}
	caught := map[string]bool{}
	for _, c := range cases {
		caught[c.check] = true
		// The task with the fault is alone, behind others, or in the second part
		// of a composite.
		for name, subject := range map[string]func(*testing.T) cubetest.Subject{
			"alone":     func(t *testing.T) cubetest.Subject { return brokenSubject(t, c.fault, 0) },
			"third":     func(t *testing.T) cubetest.Subject { return brokenSubject(t, c.fault, 2) },
			"composite": func(t *testing.T) cubetest.Subject { return behindArithmetic(brokenSubject(t, c.fault, 0)) },
		} {
			t.Run(c.fault+" "+name, func(t *testing.T) {
				t.Parallel()
				results, err := cubetest.Check(t.Context(), subject(t))
				if err != nil {
					t.Fatal(err)
				}
				found(t, results, c.check, c.also)
			})
		}
	}
	for _, name := range cubetest.Checks() {
		if !caught[name] {
			t.Errorf("no broken cube for check %s", name)
		}
	}
}

// found wants one check to fail, and no others but those of also.
func found(t *testing.T, results []cubetest.Result, check string, also []string) {
	t.Helper()
	for _, r := range results {
		switch {
		case r.Check == check && r.Status != cubetest.Fail:
			t.Errorf("check %s passes", r.Check)
		case r.Check == check:
			t.Logf("%s: %s", r.Check, r.Reason)
		case r.Status == cubetest.Fail && !slices.Contains(also, r.Check):
			t.Errorf("check %s fails too: %s", r.Check, r.Reason)
		}
	}
}

// behindArithmetic is a subject as the second part of a composite.
func behindArithmetic(s cubetest.Subject) cubetest.Subject {
	register, agent := s.Register, s.Agent
	s.Register = func(r *cube.Registry) error { return errors.Join(arithmetic.Register(r), register(r)) }
	s.Config = cube.NewComposite("both", &arithmetic.Config{}, s.Config)
	s.Agent = func(cfg cube.TaskConfig) cube.Agent {
		if *cfg.Common().SubBenchName == "arithmetic-cube" {
			return arithmetic.Agent(cfg)
		}
		return agent(cfg)
	}
	return s
}

func TestWholeCube(t *testing.T) {
	t.Parallel()
	cubetest.Run(t, brokenSubject(t, "none", 2))
}

func TestMaxTasks(t *testing.T) {
	t.Parallel()
	aboutTasks := func(s cubetest.Subject) (tasks int) {
		results, err := cubetest.Check(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if r.Status != cubetest.Pass {
				t.Errorf("%s: %s", r.Check, r.Reason)
			}
			switch r.Check {
			case "registered", "install":
				if r.Tasks != 0 {
					t.Errorf("%s looked at %d tasks", r.Check, r.Tasks)
				}
			default:
				if tasks > 0 && r.Tasks != tasks {
					t.Errorf("%s looked at %d tasks, others at %d", r.Check, r.Tasks, tasks)
				}
				tasks = r.Tasks
			}
		}
		return tasks
	}
	for _, c := range []struct{ limit, want int }{{0, 6}, {1, 1}, {3, 3}, {100, 6}} {
		s := brokenSubject(t, "none", 5)
		s.MaxTasks = c.limit
		if got := aboutTasks(s); got != c.want {
			t.Errorf("limit %d: %d tasks", c.limit, got)
		}
	}

	// Each part of a composite is looked at before a second task of one.
	s := behindArithmetic(brokenSubject(t, "close", 0))
	s.MaxTasks = 2
	results, err := cubetest.Check(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	found(t, results, "close", nil)
}

func TestVolatileInfo(t *testing.T) {
	t.Parallel()
	s := brokenSubject(t, "evaluate-pure", 0) // counts evaluations in its info
	s.VolatileInfo = []string{"evaluations"}
	results, err := cubetest.Check(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Check == "reset" && r.Status != cubetest.Pass || r.Check == "evaluate-pure" && r.Status != cubetest.Fail {
			t.Errorf("%s: %s %s", r.Check, r.Status, r.Reason)
		}
	}
}

func TestManyBrokenTasksAreSummedUp(t *testing.T) {
	t.Parallel()
	s := brokenSubject(t, "none", 9)
	s.Agent = func(task cube.TaskConfig) cube.Agent {
		return cube.AgentFunc(func(context.Context, *cube.Observation, []cube.ActionSchema) ([]cube.Action, error) {
			return nil, errors.New("no idea of " + task.TaskID())
		})
	}
	results, err := cubetest.Check(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Check == "reset" && (r.Tasks != 10 || !strings.Contains(r.Reason, `task "sound-4": `) || !strings.HasSuffix(r.Reason, "and 5 more tasks")) {
			t.Errorf("%d tasks: %s", r.Tasks, r.Reason)
		}
	}
}
