package cube

import (
	"context"

	"github.com/proctor-run/proctor/cube/infra"
	"github.com/proctor-run/proctor/cube/typed"
)

// Problem is what a benchmark author writes for a task: a struct that embeds
// [TaskBase] and has these two methods. Everything else, stepping above all, is
// [Task]'s and cannot be replaced.
//
// Hooks are called one at a time. Each may be left out but these two; what a
// hook is for is told at its interface: [ActionFilter], [ObsPostprocessor],
// [Finisher], [PrivilegedInformer], [StatusReporter], [ToolBuilder], [Closer],
// [ValueEvaluator].
type Problem interface {
	// Reset brings the task to its start and returns the first observation,
	// with the objective as text in it. It should reset the tool. It may be
	// called again at any time.
	Reset(ctx context.Context) (*Observation, Info, error)
	// Evaluate scores the current state. It has no effect on anything outside
	// and may be called at any time, also twice; obs is what the last step saw
	// and may be nil.
	Evaluate(ctx context.Context, obs *Observation) (reward float64, info Info, err error)

	// The rest comes with the embedded TaskBase.
	taskData
}

// taskData is the part of a problem that TaskBase has.
type taskData interface {
	TaskMetadata() Metadata
	common() *TaskCommon
	setMetadata(Metadata) error
}

var _ taskData = (*TaskBase[Metadata])(nil)

// typedProblem is a problem that has a name and can be written and read.
type typedProblem interface {
	Typed
	Problem
}

// ActionFilter is the optional hook that narrows or rewrites what the tool
// offers. It is asked each time the action set is.
type ActionFilter interface {
	FilterActions(actions []ActionSchema) []ActionSchema
}

// ObsPostprocessor is the optional hook that changes what the agent sees. It
// runs last in every step, after Evaluate, which sees the original.
type ObsPostprocessor interface {
	PostprocessObs(ctx context.Context, obs *Observation) (*Observation, error)
}

// Finisher is the optional hook that ends a task that has reached its goal, or
// that cannot any more. It is asked after each step that nothing else ended.
type Finisher interface {
	Finished(ctx context.Context, obs *Observation) (bool, error)
}

// PrivilegedInformer is the optional hook for what only judges and debuggers
// may see, a solution for example. Agents never see it.
type PrivilegedInformer interface {
	PrivilegedInfo(ctx context.Context) (Content, error)
}

// StatusReporter is the optional hook for a line about the task's state.
type StatusReporter interface {
	Status() string
}

// ToolBuilder is the optional hook that builds the tool, in place of the tool
// config's Make: to prepare the container first, or to wrap the tool. c is nil
// when the task has no container.
type ToolBuilder interface {
	BuildTool(ctx context.Context, c Container) (Tool, error)
}

// Closer is the optional hook that releases what the problem itself holds. It
// runs before the tool is closed and the container stopped, which happen in any
// case. It may be called repeatedly, and after a Reset that failed.
type Closer interface {
	Close(ctx context.Context) error
}

// ValueEvaluator is the optional hook of problems whose score comes as untyped
// data, from a server for example. It is called instead of Evaluate, and the
// reward is read like the reference reads it: numbers, booleans and numeric
// text; anything else is a ValidationError at "reward" once the step's output
// is put together.
type ValueEvaluator interface {
	EvaluateValue(ctx context.Context, obs *Observation) (reward Value, info Info, err error)
}

// TaskBase holds the data of a task. Embed it in a [Problem]; M is the
// benchmark's metadata type, or [Metadata] itself:
//
//	type problem struct {
//		cube.TaskBase[*Metadata]
//	}
//
// Exported fields that a problem adds with json tags, like those of [Typed],
// are part of its data.
type TaskBase[M Metadata] struct {
	Metadata M `json:"metadata" cube:"required"`
	TaskCommon
}

// TaskMetadata returns the metadata, nil when there is none.
func (b *TaskBase[M]) TaskMetadata() Metadata {
	if baseOf(b.Metadata) == nil {
		return nil
	}
	return b.Metadata
}

func (b *TaskBase[M]) setMetadata(m Metadata) error {
	return assignMetadata(&b.Metadata, m)
}

func assignMetadata[M Metadata](dst *M, m Metadata) error {
	narrow, ok := m.(M)
	if !ok {
		return &ValidationError{Type: "TaskMetadata", Errors: []typed.FieldError{{
			Loc: typed.Loc{"metadata"}, Type: "model_type", Msg: "Input should be an instance of " + typed.ClassName(*dst),
		}}}
	}
	*dst = narrow
	return nil
}

// TaskCommon is the part of [TaskBase] that does not depend on the metadata
// type.
type TaskCommon struct {
	ExecutionInfo    ExecutionInfo    `json:"execution_info"`
	ToolConfig       ToolConfig       `json:"tool_config" cube:"required"`
	ContainerBackend ContainerBackend `json:"container_backend"`
	RuntimeContext   RuntimeContext   `json:"runtime_context" cube:"optional"`
	// ValidatePerStep evaluates after every step, not only the last.
	ValidatePerStep bool `json:"validate_per_step" default:"false"`
	// RejectAgentStop hands the stop action to the tool like any other. In
	// JSON it is the opposite, accept_agent_stop.
	RejectAgentStop bool `json:"accept_agent_stop" default:"true" cube:"invert"`
	// LaterRules switches to what the later line of CUBE does (CUBE server,
	// dialect B): the stop action is always one of the actions, whatever
	// RejectAgentStop says, and takes no arguments; an action that fails, or
	// whose arguments do not fit, does not end the task, the agent is told. It
	// is not part of the task's data.
	LaterRules bool `json:"-"`
	// Seed is that of the task's config, nil when it has none. Build sets it; it
	// is not part of the task's data (CUBE, section 4.3).
	Seed *int64 `json:"-"`

	tool      Tool
	container Container
	handle    infra.Handle
}

func (c *TaskCommon) common() *TaskCommon { return c }

// Tool returns the task's tool. It is there from construction on.
func (c *TaskCommon) Tool() Tool { return c.tool }

// Container returns what was launched for the task, nil for none.
func (c *TaskCommon) Container() Container { return c.container }

// Base returns what all tasks have.
func (c *TaskCommon) Base() *TaskCommon { return c }
