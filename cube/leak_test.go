package cube_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/internal/democube"
	"github.com/proctor-run/proctor/sandbox/fake"
)

var errHook = errors.New("the hook fails")

// fault makes one hook fail, by an error or a panic.
type fault struct {
	hook  string
	panic bool
}

func (f fault) at(hook string) error {
	if f.hook != hook {
		return nil
	}
	if f.panic {
		panic("the hook panics")
	}
	return errHook
}

// leakyTool counts how often it was closed.
type leakyTool struct {
	fault  fault
	closed atomic.Int64
}

func (l *leakyTool) Actions() []cube.ActionSchema {
	_ = l.fault.at("tool Actions")
	return []cube.ActionSchema{{Name: "look", Description: "Look."}}
}

func (l *leakyTool) Execute(context.Context, cube.Action) (cube.Result, error) {
	return cube.Observed(cube.Observe(cube.Text("ok"))), l.fault.at("tool Execute")
}

func (l *leakyTool) Reset(context.Context) error { return l.fault.at("tool Reset") }

func (l *leakyTool) Close(context.Context) error {
	l.closed.Add(1)
	return l.fault.at("tool Close")
}

type leakyConfig struct {
	fault fault
	tool  *leakyTool
}

func (*leakyConfig) TypeName() string { return "test.LeakyConfig" }

func (c *leakyConfig) Make(context.Context, cube.Container) (cube.Tool, error) {
	if err := c.fault.at("tool Make"); err != nil {
		return nil, err
	}
	return c.tool, nil
}

// leakyProblem has every hook.
type leakyProblem struct {
	cube.TaskBase[cube.Metadata]
	fault fault
}

func (p *leakyProblem) BuildTool(ctx context.Context, c cube.Container) (cube.Tool, error) {
	if err := p.fault.at("BuildTool"); err != nil {
		return nil, err
	}
	return p.ToolConfig.Make(ctx, c)
}

func (p *leakyProblem) Reset(ctx context.Context) (*cube.Observation, cube.Info, error) {
	if err := p.Tool().Reset(ctx); err != nil {
		return nil, nil, err
	}
	return cube.Observe(cube.Text("go")), nil, p.fault.at("Reset")
}

func (p *leakyProblem) Evaluate(context.Context, *cube.Observation) (float64, cube.Info, error) {
	return 1, nil, p.fault.at("Evaluate")
}

func (p *leakyProblem) Finished(context.Context, *cube.Observation) (bool, error) {
	return true, p.fault.at("Finished")
}

func (p *leakyProblem) PostprocessObs(_ context.Context, obs *cube.Observation) (*cube.Observation, error) {
	return obs, p.fault.at("PostprocessObs")
}

func (p *leakyProblem) FilterActions(a []cube.ActionSchema) []cube.ActionSchema {
	_ = p.fault.at("FilterActions")
	return a
}

func (p *leakyProblem) PrivilegedInfo(context.Context) (cube.Content, error) {
	return cube.Text("secret"), p.fault.at("PrivilegedInfo")
}

func (p *leakyProblem) Status() string {
	_ = p.fault.at("Status")
	return "fine"
}

func (p *leakyProblem) Close(context.Context) error { return p.fault.at("Close") }

// drive does with a task what a driver does, and closes it.
func drive(ctx context.Context, task *cube.Task) (err error) {
	defer func() { err = errors.Join(err, task.Close(ctx)) }()
	if _, _, err := task.Reset(ctx); err != nil {
		return err
	}
	task.ActionSet() //nolint:contextcheck // an action set has no context
	task.Status()    //nolint:contextcheck // a status has no context
	if _, err := task.PrivilegedInfo(ctx); err != nil {
		return err
	}
	_, err = task.Step(ctx, cube.NewAction("look"))
	return err
}

func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	hooks := []string{
		"", "BuildTool", "tool Make", "tool Reset", "Reset", "tool Actions", "FilterActions", "Status",
		"PrivilegedInfo", "tool Execute", "Finished", "Evaluate", "PostprocessObs", "Close", "tool Close",
	}
	for _, hook := range hooks {
		for _, panics := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s panics %v", hook, panics), func(t *testing.T) {
				t.Parallel()
				leaks(t, fault{hook, panics})
			})
		}
	}
}

func leaks(t *testing.T, f fault) {
	backend := fake.New(fake.Config{Dir: t.TempDir()})
	defer fake.Verify(t, backend)
	tool := &leakyTool{fault: f}
	p := &leakyProblem{fault: f}
	p.Metadata = &cube.TaskMetadata{ID: "t", ContainerConfig: cube.NewContainerConfig("img")}
	p.ToolConfig = &leakyConfig{f, tool}
	p.ContainerBackend = cube.NewLocalContainerBackend(backend)
	task, err := cube.NewTask(t.Context(), p)
	built := err == nil
	if built {
		err = drive(t.Context(), task)
	}
	silent := f.hook == "" || !f.panic && (f.hook == "FilterActions" || f.hook == "Status" || f.hook == "tool Actions")
	if (err == nil) != silent {
		t.Errorf("error %v", err)
	}
	if n := backend.Live(); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
	if built && tool.closed.Load() == 0 {
		t.Error("the tool was not closed")
	}
	if backend.Count(fake.OpCreate) != 1 || backend.Count(fake.OpDestroy) != 1 {
		t.Errorf("%d created, %d destroyed", backend.Count(fake.OpCreate), backend.Count(fake.OpDestroy))
	}
}

// lateFailure fails in Make when its task is set up already.
type lateFailure struct {
	cube.TaskConfigBase[cube.Metadata]
	fault fault
	tool  *leakyTool
}

func (*lateFailure) TypeName() string { return "test_cube.LateFailure" }

func (c *lateFailure) Make(ctx context.Context, rc cube.RuntimeContext, b cube.ContainerBackend) (*cube.Task, error) {
	if _, err := c.Build(ctx, rc, b, &leakyProblem{}, &leakyConfig{tool: c.tool}); err != nil {
		return nil, err
	}
	return nil, c.fault.at("Make")
}

func TestMakeThatFailsLate(t *testing.T) {
	t.Parallel()
	for _, f := range []fault{{"Make", false}, {"Make", true}, {"", false}} {
		backend := fake.New(fake.Config{Dir: t.TempDir()})
		cfg := &lateFailure{fault: f, tool: &leakyTool{}}
		cfg.Metadata = &cube.TaskMetadata{ID: "t", ContainerConfig: cube.NewContainerConfig("img")}
		task, err := registry(t, cube.Options{}).MakeTask(t.Context(), cfg, cube.RuntimeContext{}, cube.NewLocalContainerBackend(backend))
		if task != nil || err == nil {
			t.Errorf("%+v: got %v, %v", f, task, err)
		}
		if backend.Live() != 0 || cfg.tool.closed.Load() != 1 {
			t.Errorf("%+v: %d sandboxes are left, the tool was closed %d times", f, backend.Live(), cfg.tool.closed.Load())
		}
	}
}

func TestPanicClosesAtOnce(t *testing.T) {
	t.Parallel()
	backend := fake.New(fake.Config{Dir: t.TempDir()})
	p := &leakyProblem{fault: fault{"Evaluate", true}}
	p.Metadata = &cube.TaskMetadata{ID: "t", ContainerConfig: cube.NewContainerConfig("img")}
	p.ToolConfig = &leakyConfig{tool: &leakyTool{}}
	p.ContainerBackend = cube.NewLocalContainerBackend(backend)
	task, err := cube.NewTask(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	_, err = task.Step(t.Context(), cube.Stop())
	if _, ok := errors.AsType[*cube.PanicError](err); !ok || cube.ErrorType(err) != "RuntimeError" {
		t.Errorf("got %v", err)
	}
	if n := backend.Live(); n != 0 {
		t.Errorf("%d sandboxes are left right after the panic", n)
	}
	_, err = task.Step(t.Context(), cube.Stop())
	wantMessage(t, err, "the task was closed after a panic in Evaluate")
	if err := task.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCloseAfterTheEndOfTheContext(t *testing.T) {
	t.Parallel()
	backend := fake.New(fake.Config{Dir: t.TempDir()})
	defer fake.Verify(t, backend)
	p := &leakyProblem{}
	p.Metadata = &cube.TaskMetadata{ID: "t", ContainerConfig: cube.NewContainerConfig("img")}
	p.ToolConfig = &leakyConfig{tool: &leakyTool{}}
	p.ContainerBackend = cube.NewLocalContainerBackend(backend)
	task, err := cube.NewTask(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := task.Close(ctx); err != nil {
		t.Error(err)
	}
	if n := backend.Live(); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
}

func TestStopIsRetriedByTheNextClose(t *testing.T) {
	t.Parallel()
	backend := fake.New(fake.Config{Dir: t.TempDir(), Before: fake.FailAt(fake.OpDestroy, 1, nil)})
	defer fake.Verify(t, backend)
	p := &leakyProblem{}
	p.Metadata = &cube.TaskMetadata{ID: "t", ContainerConfig: cube.NewContainerConfig("img")}
	p.ToolConfig = &leakyConfig{tool: &leakyTool{}}
	p.ContainerBackend = cube.NewLocalContainerBackend(backend)
	task, err := cube.NewTask(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if err := task.Close(t.Context()); !errors.Is(err, fake.ErrInjected) {
		t.Errorf("got %v", err)
	}
	if err := task.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestParallelTasks makes, steps and closes 64 tasks of one benchmark at the
// same time; the race detector looks on.
func TestParallelTasks(t *testing.T) {
	t.Parallel()
	backend := fake.New(fake.Config{Dir: t.TempDir()})
	defer fake.Verify(t, backend)
	log := &democube.Log{}
	reg := registryWith(t, cube.Options{Sandbox: backend}, log)
	cfg := &democube.ConfigA{}
	cfg.ContainerBackend = cube.NewLocalContainerBackend(backend)
	bench, err := reg.Make(t.Context(), cube.NewComposite("all", cfg, &democube.ConfigB{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	var configs []cube.TaskConfig
	for c, err := range bench.TaskConfigs() {
		if err != nil {
			t.Fatal(err)
		}
		configs = append(configs, c)
	}
	var wg sync.WaitGroup
	errs := make([]error, 64)
	for i := range errs {
		wg.Go(func() { errs[i] = countToThree(t.Context(), bench, configs[i%len(configs)]) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if n := backend.Live(); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
	if err := bench.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func countToThree(ctx context.Context, bench *cube.Benchmark, cfg cube.TaskConfig) (err error) {
	task, err := bench.Spawn(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, task.Close(ctx)) }()
	if _, _, err := task.Reset(ctx); err != nil {
		return err
	}
	for {
		out, err := task.Step(ctx, cube.NewAction("count"))
		if err != nil {
			return err
		}
		if _, err := cube.Marshal(out); err != nil {
			return err
		}
		if out.Done {
			if out.Reward != 1 {
				return fmt.Errorf("%s: reward %v", cfg.TaskID(), out.Reward)
			}
			return nil
		}
	}
}
