package cube

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/cube/internal/params"
	"github.com/proctor-run/proctor/internal/guarded"
	"github.com/proctor-run/proctor/value"
)

// Declaration is an action made of a typed function, see [Func].
type Declaration struct {
	schema ActionSchema
	params *params.Params
	call   func(ctx context.Context, in reflect.Value) (any, error)
	hidden bool
	err    error
}

// Func declares an action. The fields of In are its parameters, in order:
//
//	cube.Func("greet", "Greet someone.", func(ctx context.Context, in struct {
//		Name  string `json:"name" desc:"Who to greet."`
//		Times int    `json:"times" desc:"How often." default:"1"`
//		Tone  string `json:"tone" enum:"warm,cool" default:"warm"`
//		Title *string `json:"title"`
//	}) (any, error) { … })
//
// The JSON schema follows from the types: string, bool, ints, floats, plain
// structs, slices of all those, and *[Object] or [Map]. A field with a default
// tag or of pointer type is optional. A [Value] takes anything and has no type
// in the schema; so has an any, which gets plain Go values. A type tag overrides
// the type with a Python or JSON schema name. A field without a json tag is a
// mistake that [NewActionTool] reports; json:"-" leaves a field out.
//
// Names have letters, digits, underscores and hyphens, at most 64, because model
// interfaces take no others. Of the description the first line is used, like
// the reference does with the text in a function; [Declaration.Described] gives
// a longer one.
//
// What fn returns becomes the observation as [ContentOf] says; nothing (nil,
// false, 0, "", an empty list or map) becomes the text "Success". Its error,
// a panic in it and arguments that do not fit are a failed action, not an
// error of Execute.
func Func[In any](name, description string, fn func(ctx context.Context, in In) (any, error)) Declaration {
	d := Declaration{schema: ActionSchema{Name: name}, call: func(ctx context.Context, in reflect.Value) (any, error) {
		return fn(ctx, in.Interface().(In))
	}}
	if strings.TrimSpace(description) == "" {
		d.err = ValueErrorf("Function '%s' has no docstring. A docstring is required to extract parameter information.", name)
		return d
	}
	if d.err = d.schema.CheckName(); d.err != nil {
		return d
	}
	if d.params, d.err = params.Of(reflect.TypeFor[In]()); d.err != nil {
		return d
	}
	first, _, _ := strings.Cut(strings.TrimSpace(description), "\n")
	d.schema = ActionSchema{Name: name, Description: strings.TrimSpace(first), Parameters: d.params.Schema()}
	return d
}

// Schema returns what the action looks like to a model, or what is wrong with
// its declaration.
func (d Declaration) Schema() (ActionSchema, error) { return d.schema, d.err }

// Described returns the same action with all of text as its description.
func (d Declaration) Described(text string) Declaration {
	switch text = strings.TrimSpace(text); {
	case d.err != nil:
	case text == "":
		d.err = ValueErrorf("the description of action '%s' is empty", d.schema.Name)
	default:
		d.schema.Description = text
	}
	return d
}

// Hidden returns the same action, executable but not part of the action set.
func (d Declaration) Hidden() Declaration {
	d.hidden = true
	return d
}

// ActionTool is a tool made of declared actions. Its Reset and Close do
// nothing; a tool that embeds it writes its own where it needs to.
type ActionTool struct {
	name     string
	declared []Declaration // by name
	attached []Declaration // in the order of Attach
	reserved []string
}

// lifecycle are the members that every tool has and that are not actions.
var lifecycle = [...]string{"reset", "close", "execute_action", "action_set"}

// NewActionTool returns a tool of the declared actions. Name is the tool's
// class name in messages to models.
func NewActionTool(name string, declared ...Declaration) (*ActionTool, error) {
	t := &ActionTool{name: name}
	for _, d := range declared {
		if err := t.check(d, t.declared); err != nil {
			return nil, err
		}
		t.declared = append(t.declared, d)
	}
	slices.SortFunc(t.declared, func(a, b Declaration) int { return strings.Compare(a.schema.Name, b.schema.Name) })
	return t, nil
}

func (t *ActionTool) check(d Declaration, among []Declaration) error {
	if d.err != nil {
		return fmt.Errorf("declaring an action of %s: %w", t.name, d.err)
	}
	if find(among, d.schema.Name) != nil {
		return ValueErrorf("Duplicate action name '%s' in %s.", d.schema.Name, t.name)
	}
	return nil
}

// Attach adds actions to this one tool. They are listed after the declared
// ones, in the order of attachment, and win over a declared one of their name.
func (t *ActionTool) Attach(actions ...Declaration) error {
	for _, d := range actions {
		if err := t.check(d, t.attached); err != nil {
			return err
		}
		t.attached = append(t.attached, d)
	}
	return nil
}

// Reserve names members that the tool's Python twin has and that are not
// actions: calling one is answered in the words that the twin has for it.
func (t *ActionTool) Reserve(names ...string) { t.reserved = append(t.reserved, names...) }

// ToolName returns the name given to NewActionTool.
func (t *ActionTool) ToolName() string { return t.name }

// Actions returns the schemas: declared ones by name, then attached ones.
func (t *ActionTool) Actions() []ActionSchema {
	out := make([]ActionSchema, 0, len(t.declared)+len(t.attached))
	for _, list := range [][]Declaration{t.declared, t.attached} {
		for _, d := range list {
			if !d.hidden && !strings.HasPrefix(d.schema.Name, "_") {
				out = append(out, d.schema)
			}
		}
	}
	return out
}

// Execute runs a declared action (CUBE, section 3.2).
func (t *ActionTool) Execute(ctx context.Context, a Action) (Result, error) {
	d := find(t.attached, a.Name)
	if d == nil {
		d = find(t.declared, a.Name)
	}
	if d == nil {
		return Result{}, t.unknown(a.Name)
	}
	out, err := t.run(ctx, d, a)
	if err != nil {
		failed := Failed(err)
		if mistake, ok := errors.AsType[*params.ArgumentError](err); ok {
			failed.invalid = invalidArguments(a.Name, mistake.Why, d.params.Names())
		}
		return failed, nil
	}
	content, err := resultContent(out)
	if err != nil {
		return Result{}, err
	}
	content.Head().ToolCallID = a.ID
	return Observed(Observe(content)), nil
}

func (t *ActionTool) unknown(name string) error {
	if slices.Contains(lifecycle[:], name) || slices.Contains(t.reserved, name) {
		return ValueErrorf("Action %[1]s exists in %[2]s but is not decorated with @tool_action. Add @tool_action to expose it as an action.", name, t.name)
	}
	return ValueErrorf("Action %s does not exist in %s.", name, t.name)
}

func (t *ActionTool) run(ctx context.Context, d *Declaration, a Action) (out any, err error) {
	call := t.name + "." + a.Name + "()"
	defer guarded.Recovered(call, &err)
	in, err := d.params.Read(call, a.Arguments)
	if err != nil {
		return nil, err
	}
	return d.call(ctx, in)
}

// resultContent is what an action returned, as content.
func resultContent(out any) (Content, error) {
	if v, err := ValueOf(out); err == nil && !value.Truth(v) {
		return Text("Success"), nil
	}
	return ContentOf(out)
}

// Reset does nothing.
func (*ActionTool) Reset(context.Context) error { return nil }

// Close does nothing.
func (*ActionTool) Close(context.Context) error { return nil }

func find(list []Declaration, name string) *Declaration {
	for i := range list {
		if list[i].schema.Name == name {
			return &list[i]
		}
	}
	return nil
}
