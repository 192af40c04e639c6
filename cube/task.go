package cube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/proctor-run/proctor/cube/infra"
	"github.com/proctor-run/proctor/cube/typed"
)

// Task is a problem that has been set up: its container runs and its tool is
// built. One goroutine uses it; Close may come from another, and must be called.
//
//	obs, info, err := task.Reset(ctx)
//	out, err := task.Step(ctx, actions...) // until out.Done
//	err = task.Close(ctx)
type Task struct {
	problem Problem
	c       *TaskCommon
	now     func() time.Time

	mu       sync.Mutex // guards what Close releases and broken
	broken   error
	released bool
}

// NewTask sets a problem up (CUBE, section 4.3): it launches the container, if
// the metadata wants one and there is an infra or a backend, and builds the
// tool. When it returns an error, nothing is left running.
func NewTask(ctx context.Context, p Problem) (*Task, error) {
	t := &Task{problem: p, c: p.common(), now: time.Now}
	if baseOf(p.TaskMetadata()) == nil {
		return nil, missingField(p, "metadata")
	}
	if t.c.ToolConfig == nil {
		return nil, missingField(p, "tool_config")
	}
	if t.c.tool != nil {
		return nil, RuntimeErrorf("%s is the problem of another task already", typed.ClassName(p))
	}
	if err := t.construct(ctx); err != nil {
		ctx, cancel := detached(ctx)
		defer cancel()
		return nil, joinCleanup(err, t.release(ctx))
	}
	if m, ok := ctx.Value(makingKey{}).(*making); ok {
		m.tasks = append(m.tasks, t)
	}
	return t, nil
}

func missingField(p Problem, name string) error {
	return &ValidationError{Type: typed.ClassName(p), Errors: []FieldError{{Loc: Loc{name}, Type: "missing", Msg: "Field required"}}}
}

func (t *Task) construct(ctx context.Context) error {
	if err := guarded("launching the container", func() error { return t.launch(ctx) }); err != nil {
		return err
	}
	tool, err := t.buildTool(ctx)
	if err == nil {
		t.c.tool = tool
	}
	return err
}

func (t *Task) buildTool(ctx context.Context) (tool Tool, err error) {
	b, ok := t.problem.(ToolBuilder)
	if !ok {
		return makeTool(ctx, t.c.ToolConfig, t.c.container)
	}
	defer recovered("BuildTool", &err)
	tool, err = b.BuildTool(ctx, t.c.container)
	if err == nil && tool == nil {
		err = TypeErrorf("BuildTool of %s built no tool", typed.ClassName(t.problem))
	}
	return tool, err
}

// launch starts the container through the infra of the runtime context, which
// takes precedence, or through the backend.
func (t *Task) launch(ctx context.Context) error {
	cfg := t.Metadata().Base().ContainerConfig
	if infra, ok := t.c.RuntimeContext.Infra(); ok {
		if cfg == nil {
			return nil
		}
		return t.launchThrough(ctx, infra, cfg)
	}
	if t.c.ContainerBackend == nil || cfg == nil {
		return nil
	}
	var err error
	t.c.container, err = t.c.ContainerBackend.Launch(ctx, cfg)
	if err != nil {
		return err
	}
	return RunHealthCheck(ctx, t.c.ContainerBackend, t.c.container)
}

func (t *Task) launchThrough(ctx context.Context, place Infra, cfg *ContainerConfig) error {
	resource := infra.ContainerResource(t.ID(), cfg)
	status, err := place.ProvisionStatus(ctx, resource)
	if err != nil {
		return err
	}
	if status == NeedsProvisioning {
		if err := place.Provision(ctx, resource); err != nil {
			return err
		}
	}
	if t.c.handle, err = place.Launch(ctx, resource); err != nil {
		return err
	}
	t.c.container, err = t.c.handle.Container()
	return err
}

// SetClock replaces the clock of the profiling; for tests.
func (t *Task) SetClock(now func() time.Time) { t.now = now }

// Problem returns what the task was made of.
func (t *Task) Problem() Problem { return t.problem }

// Metadata returns the task's metadata.
func (t *Task) Metadata() Metadata { return t.problem.TaskMetadata() }

// ID returns the native id of the task.
func (t *Task) ID() string { return t.Metadata().Base().ID }

// Tool returns the task's tool.
func (t *Task) Tool() Tool { return t.c.tool }

// Container returns the task's container, nil for none.
func (t *Task) Container() Container { return t.c.container }

// AcceptsStop reports whether the stop action ends the task. What drives the
// agent then offers it [StopAction] besides the action set.
func (t *Task) AcceptsStop() bool { return !t.c.RejectAgentStop }

// ActionSet returns what the agent can do now. The stop action is not in it. A
// panic in the cube's code gives nothing and closes the task.
func (t *Task) ActionSet() []ActionSchema {
	var actions []ActionSchema
	_ = t.hook(context.Background(), "ActionSet", func() error { // the next Step returns the error
		actions = t.c.tool.Actions()
		if f, ok := t.problem.(ActionFilter); ok {
			actions = f.FilterActions(actions)
		}
		return nil
	})
	return actions
}

// Reset brings the task to its start.
func (t *Task) Reset(ctx context.Context) (obs *Observation, info Info, err error) {
	err = t.hook(ctx, "Reset", func() error {
		obs, info, err = t.problem.Reset(ctx)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if obs == nil {
		return nil, nil, TypeErrorf("Reset of %s returned no observation", typed.ClassName(t.problem))
	}
	return obs, info, nil
}

// Evaluate scores the task now. It may be called before, during and after an
// episode.
func (t *Task) Evaluate(ctx context.Context, obs *Observation) (reward float64, info Info, err error) {
	score, err := t.evaluate(ctx, obs)
	if err != nil {
		return 0, nil, err
	}
	reward, err = score.reward()
	return reward, score.info, err
}

// PrivilegedInfo returns what only judges may see; an empty object when the
// problem has none.
func (t *Task) PrivilegedInfo(ctx context.Context) (content Content, err error) {
	p, ok := t.problem.(PrivilegedInformer)
	if !ok {
		return &StructuredContent{}, nil
	}
	err = t.hook(ctx, "PrivilegedInfo", func() error {
		content, err = p.PrivilegedInfo(ctx)
		return err
	})
	if err == nil && content == nil {
		content = &StructuredContent{}
	}
	return content, err
}

// Status returns the problem's line about its state, "" when it has none.
func (t *Task) Status() string {
	status := ""
	if s, ok := t.problem.(StatusReporter); ok {
		_ = t.hook(context.Background(), "Status", func() error { // the next Step returns the error
			status = s.Status()
			return nil
		})
	}
	return status
}

// hook calls code of the cube. After a panic in it nothing is known about the
// task's state: it is closed at once and refuses to go on.
func (t *Task) hook(ctx context.Context, name string, f func() error) error {
	if err := t.brokenErr(); err != nil {
		return err
	}
	err := guarded(name, f)
	if _, panicked := err.(*PanicError); panicked {
		return t.breakDown(ctx, err)
	}
	return err
}

func (t *Task) brokenErr() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.broken
}

func (t *Task) breakDown(ctx context.Context, cause error) error {
	t.mu.Lock()
	t.broken = RuntimeErrorf("the task was closed after a %w", cause)
	t.mu.Unlock()
	return joinCleanup(cause, t.Close(ctx))
}

// Close releases everything: it calls the problem's own Close, closes the tool
// and stops the container. Each happens whatever became of the others, and
// although ctx may have ended. A second Close only calls the problem's and the
// tool's again.
func (t *Task) Close(ctx context.Context) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	var own error
	if c, ok := t.problem.(Closer); ok {
		own = guarded("Close", func() error { return c.Close(ctx) })
	}
	return joined(own, t.release(ctx))
}

// release closes the tool and stops the container, and forgets the container
// once it is stopped.
func (t *Task) release(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	if t.c.tool != nil {
		errs = append(errs, guarded("tool Close", func() error { return t.c.tool.Close(ctx) }))
	}
	if t.released {
		return joined(errs...)
	}
	var err error
	switch {
	case t.c.handle != nil:
		err = guarded("handle Close", func() error { return t.c.handle.Close(ctx) })
	case t.c.container != nil:
		err = guarded("container Stop", func() error { return t.c.container.Stop(ctx) })
	}
	t.released = err == nil
	if err != nil {
		err = fmt.Errorf("stopping the container of task %q: %w", t.ID(), err)
	}
	return joined(append(errs, err)...)
}

// joined is errors.Join, but one error alone stays what it is.
func joined(errs ...error) error {
	var only error
	n := 0
	for _, err := range errs {
		if err != nil {
			only, n = err, n+1
		}
	}
	if n < 2 {
		return only
	}
	return errors.Join(errs...)
}
