package cube

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/proctor-run/proctor/cube/infra"
	"github.com/proctor-run/proctor/cube/internal/turns"
	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/internal/guarded"
)

// Task is a problem that has been set up: its container runs and its tool is
// built. Its methods may be called from any number of goroutines: one at a time
// is inside the problem or the tool, the others wait. Close interrupts whoever is
// inside, and must be called.
//
//	obs, info, err := task.Reset(ctx)
//	out, err := task.Step(ctx, actions...) // until out.Done
//	err = task.Close(ctx)
//
// A method that is called with a context that has ended does nothing and returns
// the context's error. After Close, Reset, Step, Evaluate and PrivilegedInfo are
// [ErrClosed], and there are no actions.
type Task struct {
	problem Problem
	c       *TaskCommon
	now     func() time.Time

	turns   *turns.Turns
	release sync.Mutex // one at a time releases what the task holds
	freed   bool       // the container is stopped

	status atomic.Value // of string: the line that Status returned last
}

// ErrClosed is returned by the methods of a task that was closed.
var ErrClosed = exception.New(exception.RuntimeError, "the task is closed")

// NewTask sets a problem up (CUBE, section 4.3): it launches the container, if
// the metadata wants one and there is an infra or a backend, and builds the
// tool. When it returns an error, nothing is left running. Whoever calls it, not
// only through [TaskConfigBase.Build], closes the task when it cannot be handed
// on; a Make that fails later may also return it beside the error.
func NewTask(ctx context.Context, p Problem) (task *Task, err error) {
	t := &Task{problem: p, c: p.common(), now: clock.Or(nil), turns: turns.New(ErrClosed)}
	if baseOf(p.TaskMetadata()) == nil {
		return nil, missingField(p, "metadata")
	}
	if t.c.ToolConfig == nil {
		return nil, missingField(p, "tool_config")
	}
	if t.c.tool != nil {
		return nil, RuntimeErrorf("%s is the problem of another task already", typed.ClassName(p))
	}
	made := false
	defer func() {
		if !made { // also when a hook ends its goroutine
			ctx, cancel := detached(ctx)
			defer cancel()
			task, err = nil, joinCleanup(err, t.free(ctx))
		}
	}()
	if err := t.construct(ctx); err != nil {
		return nil, err
	}
	made = true
	return t, nil
}

func missingField(p Problem, name string) error {
	return &ValidationError{Type: typed.ClassName(p), Errors: []typed.FieldError{{Loc: typed.Loc{name}, Type: "missing", Msg: "Field required"}}}
}

func (t *Task) construct(ctx context.Context) error {
	if err := guarded.Call("launching the container", func() error { return t.launch(ctx) }); err != nil {
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
	defer guarded.Recovered("BuildTool", &err)
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
	return runHealthCheck(ctx, t.c.ContainerBackend, t.c.container)
}

func (t *Task) launchThrough(ctx context.Context, place Infra, cfg *ContainerConfig) error {
	resource := infra.ContainerResource(t.ID(), cfg)
	status, err := place.ProvisionStatus(ctx, resource)
	if err != nil {
		return err
	}
	if status == infra.NeedsProvisioning {
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
// agent then offers it [StopAction] besides the action set, unless it is in it
// ([Task.UseLaterRules]).
func (t *Task) AcceptsStop() bool { return t.c.LaterRules || !t.c.RejectAgentStop }

// UseLaterRules switches the task to what the later line of CUBE does; see
// [TaskCommon]. It is called before the first Reset.
func (t *Task) UseLaterRules() { t.c.LaterRules = true }

// ActionSet returns what the agent can do now. The stop action is not in it,
// unless the task follows the later rules. It is the caller's own: changing it
// changes nothing in the tool. A panic in the cube's code gives nothing and closes
// the task.
func (t *Task) ActionSet() []ActionSchema {
	ctx, err := t.turns.Enter(context.Background())
	if err != nil {
		return nil
	}
	defer t.turns.Leave()
	var actions []ActionSchema
	_ = t.hook(ctx, "ActionSet", func() error { // the next Step returns the error
		offered := t.c.tool.Actions()
		if f, ok := t.problem.(ActionFilter); ok {
			offered = f.FilterActions(offered)
		}
		actions = ownActions(offered)
		return nil
	})
	if t.c.LaterRules && t.turns.Broken() == nil {
		actions = withStop(actions)
	}
	return actions
}

// ownActions copies what the cube may go on using.
func ownActions(offered []ActionSchema) []ActionSchema {
	own := slices.Clone(offered)
	for i := range own {
		own[i].Parameters = own[i].Parameters.Clone()
	}
	return own
}

// Reset brings the task to its start.
func (t *Task) Reset(ctx context.Context) (obs *Observation, info Info, err error) {
	ctx, err = t.turns.Enter(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer t.turns.Leave()
	err = t.hook(ctx, "Reset", func() (err error) {
		obs, info, err = t.problem.Reset(ctx)
		return err
	})
	if err == nil {
		err = checkObservation(obs, "Reset of "+typed.ClassName(t.problem))
	}
	if err == nil {
		err = typed.CheckNesting("info of Reset", info)
	}
	if err != nil {
		return nil, nil, err
	}
	return obs, info, nil
}

// Evaluate scores the task now. It may be called before, during and after an
// episode, not after Close.
func (t *Task) Evaluate(ctx context.Context, obs *Observation) (reward float64, info Info, err error) {
	ctx, err = t.turns.Enter(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer t.turns.Leave()
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
	ctx, err = t.turns.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer t.turns.Leave()
	err = t.hook(ctx, "PrivilegedInfo", func() (err error) {
		content, err = p.PrivilegedInfo(ctx)
		return err
	})
	if err == nil && isNil(content) {
		return &StructuredContent{}, nil
	}
	if err == nil {
		err = checkObservation(Observe(content), "PrivilegedInfo of "+typed.ClassName(t.problem))
	}
	if err != nil {
		return nil, err
	}
	return content, nil
}

// Status returns the problem's line about its state, "" when it has none. It does
// not wait: while something runs in the task, it is the line of the call before,
// because the problem's code is called by one caller at a time. It can
// be asked for after Close, too.
func (t *Task) Status() string {
	s, ok := t.problem.(StatusReporter)
	if !ok {
		return ""
	}
	release, free := t.turns.TryHold()
	if !free {
		known, _ := t.status.Load().(string)
		return known
	}
	defer release()
	status := ""
	_ = t.call(context.Background(), "Status", func() error { // the next Step returns the error
		status = s.Status()
		return nil
	})
	t.status.Store(status)
	return status
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
