package cube

import (
	"context"
	"fmt"

	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/internal/guarded"
)

// Tool is what an agent acts with. Most tools embed an [*ActionTool], made of
// typed functions, and have nothing to write of this interface:
//
//	type tool struct {
//		*cube.ActionTool
//		answer *int
//	}
//
// A tool serves one task, which calls its methods one at a time, except that
// Close comes all the same when a method does not return although its context
// has ended.
type Tool interface {
	// Actions returns the schemas of what the tool can do, in order.
	Actions() []ActionSchema
	// Execute runs one action. What the action itself does wrong is a result
	// (see [Failed]); an error means that there is no such action or that the
	// tool cannot work, and it leaves [Task.Step].
	Execute(ctx context.Context, a Action) (Result, error)
	// Reset brings the tool to its state at the start of a task.
	Reset(ctx context.Context) error
	// Close releases what the tool holds. It may be called repeatedly.
	Close(ctx context.Context) error
}

// Result is how an action ended: exactly one of both is set.
type Result struct {
	Obs *Observation
	Err *StepError

	// invalid is what the later line of CUBE tells the agent when the arguments
	// of the action do not fit, which is no error there.
	invalid string
}

// Observed is the result of an action that worked.
func Observed(obs *Observation) Result { return Result{Obs: obs} }

// Failed is the result of an action that did not: the task ends with the
// error, and Evaluate still runs.
func Failed(err error) Result { return Result{Err: newStepError(err)} }

// ToolConfig makes tools. It is data: credentials are never in its fields.
type ToolConfig interface {
	Typed
	// Make builds the tool for one task; c is the task's container, nil when it
	// has none. The tool does not stop the container.
	Make(ctx context.Context, c Container) (Tool, error)
}

// named is a tool that has a name for messages; others go by their Go type.
type named interface{ ToolName() string }

func toolName(t Tool) string {
	if n, ok := t.(named); ok {
		return n.ToolName()
	}
	return typed.ClassName(t)
}

// Toolbox is several tools as one. Action names are unique across them.
type Toolbox struct {
	tools []Tool
	owner map[string]Tool
}

// NewToolbox joins tools; a Toolbox among them is replaced by its tools.
func NewToolbox(tools ...Tool) (*Toolbox, error) {
	b := &Toolbox{owner: map[string]Tool{}}
	for _, t := range tools {
		if inner, ok := t.(*Toolbox); ok {
			b.tools = append(b.tools, inner.tools...)
			continue
		}
		b.tools = append(b.tools, t)
	}
	for _, t := range b.tools {
		for _, a := range t.Actions() {
			if first, taken := b.owner[a.Name]; taken {
				return nil, ValueErrorf("Duplicate action name '%s' found in multiple tools (%s and %s). Action names must be unique across all tools in the toolbox.", a.Name, toolName(first), toolName(t))
			}
			b.owner[a.Name] = t
		}
	}
	return b, nil
}

// Tools returns the tools in order.
func (b *Toolbox) Tools() []Tool { return b.tools }

// Actions returns the actions of all tools, in the order of the tools.
func (b *Toolbox) Actions() []ActionSchema {
	var out []ActionSchema
	for _, t := range b.tools {
		out = append(out, t.Actions()...)
	}
	return out
}

// Execute hands the action to the tool that has it.
func (b *Toolbox) Execute(ctx context.Context, a Action) (Result, error) {
	t, ok := b.owner[a.Name]
	if !ok {
		return Result{}, ValueErrorf("Action '%s' is not supported by any tool in the toolbox.", a.Name)
	}
	return t.Execute(ctx, a)
}

// Reset resets the tools in order; the first error stops.
func (b *Toolbox) Reset(ctx context.Context) error {
	for _, t := range b.tools {
		if err := t.Reset(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close closes every tool, whatever the others do.
func (b *Toolbox) Close(ctx context.Context) error { return closeTools(ctx, b.tools) }

// Find returns the first tool of type T: the tool itself, or one in a toolbox.
//
//	counter, ok := cube.Find[*Counter](p.Tool()) // a type of the cube's own
func Find[T Tool](t Tool) (T, bool) {
	if b, ok := t.(*Toolbox); ok {
		for _, inner := range b.tools {
			if found, ok := inner.(T); ok {
				return found, true
			}
		}
	}
	found, ok := t.(T)
	return found, ok
}

// ToolboxConfig makes a [Toolbox] of the tools of several configs.
type ToolboxConfig struct {
	ToolConfigs []ToolConfig `json:"tool_configs" default:"[]"`
}

// TypeName is the name of the type in documents.
func (*ToolboxConfig) TypeName() string { return "cube.tool.ToolboxConfig" }

// Make builds every tool with the same container. When one fails, those that
// were built are closed.
func (c *ToolboxConfig) Make(ctx context.Context, container Container) (_ Tool, err error) {
	var tools []Tool
	defer func() {
		if err != nil {
			err = joinCleanup(err, closeTools(context.WithoutCancel(ctx), tools))
		}
	}()
	for i, cfg := range c.ToolConfigs {
		if cfg == nil {
			return nil, ValueErrorf("tool config %d is null", i)
		}
		t, err := makeTool(ctx, cfg, container)
		if err != nil {
			return nil, err
		}
		tools = append(tools, t)
	}
	return NewToolbox(tools...)
}

// makeTool checks the config, which may have been changed since it was read,
// calls Make and turns a panic or a missing tool into an error.
func makeTool(ctx context.Context, cfg ToolConfig, c Container) (t Tool, err error) {
	defer guarded.Recovered(fmt.Sprintf("Make of %s", cfg.TypeName()), &err)
	if v, ok := cfg.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return nil, err
		}
	}
	t, err = cfg.Make(ctx, c)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, TypeErrorf("%s made no tool", cfg.TypeName())
	}
	return t, nil
}
