package cube

import (
	"strings"

	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// ActionSchema describes an action to a model (CUBE, section 2).
type ActionSchema struct {
	Name        string  `json:"name" cube:"nonblank"`
	Description string  `json:"description" cube:"nonblank"`
	Parameters  *Object `json:"parameters" default:"{}"` // a JSON schema of kind object
}

// TypeName is the name of the type in documents.
func (*ActionSchema) TypeName() string { return "cube.core.ActionSchema" }

// StopName is the name of the stop action. It is matched exactly.
const StopName = "final_step"

// StopAction is the schema of the action with which an agent ends a task. It is
// not part of a task's action set: what drives the agent adds it.
func StopAction() ActionSchema {
	return ActionSchema{Name: StopName, Description: "Stop the task execution."}
}

// ToolDescriptor returns the schema as models take it:
// {"type": "function", "function": {"name", "description", "parameters"}}.
func (s *ActionSchema) ToolDescriptor() *Object {
	params := s.Parameters
	if params == nil {
		params = value.NewObject(0)
	}
	return Pairs("type", "function", "function",
		Pairs("name", s.Name, "description", s.Description, "parameters", params))
}

// CheckDescriptions reports the first parameter that has no description, in
// the reference's words, as an error; nil when there is none (CUBE, section 2.1).
func (s *ActionSchema) CheckDescriptions() error {
	v, _ := s.Parameters.Get("properties")
	properties, ok := v.(*Object)
	if !ok {
		return nil
	}
	for name, p := range properties.All() {
		if name == "self" {
			continue
		}
		property, ok := p.(*Object)
		if !ok {
			return ValueErrorf("parameter '%s' invalid", name)
		}
		desc, _ := property.Get("description") // any text that is not blank, also that of a number
		if !value.Truth(desc) || strings.TrimSpace(PythonText(desc)) == "" {
			return ValueErrorf("parameter '%s' missing description", name)
		}
	}
	return nil
}

// maxActionName is the length of the longest name that model interfaces take.
const maxActionName = 64

// CheckName returns an error for a name that model interfaces do not take: they
// allow letters, digits, underscores and hyphens, 64 at most.
func (s *ActionSchema) CheckName() error {
	if strings.TrimSpace(s.Name) == "" {
		return ValueErrorf("must be a non-empty string")
	}
	allowed := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
	}
	if len(s.Name) > maxActionName || strings.ContainsFunc(s.Name, func(r rune) bool { return !allowed(r) }) {
		return ValueErrorf("action name %s: names have letters, digits, underscores and hyphens, at most %d", quote(s.Name), maxActionName)
	}
	return nil
}

// Action is one call of an action.
type Action struct {
	ID        *string `json:"id"` // the model's tool-call id
	Name      string  `json:"name"`
	Arguments *Object `json:"arguments" default:"{}"`
}

// TypeName is the name of the type in documents.
func (*Action) TypeName() string { return "cube.core.Action" }

// NewAction returns a call with arguments given as alternating names and
// values, as for [Pairs].
func NewAction(name string, args ...any) Action {
	return Action{Name: name, Arguments: Pairs(args...)}
}

// Stop returns a call of the stop action.
func Stop() Action { return Action{Name: StopName} }

// ActionFromToolCall reads a tool call of an OpenAI-style API, both the chat
// form (with "function") and the responses form. Missing arguments are none,
// text arguments are parsed as JSON (CUBE, section 2.1).
func ActionFromToolCall(call *Object) (Action, error) {
	source := call
	if f, ok := call.Get("function"); ok {
		source, _ = f.(*Object)
	}
	name, ok := source.Get("name")
	if !ok {
		return Action{}, keyErrorf("name")
	}
	args, err := callArguments(source)
	if err != nil {
		return Action{}, err
	}
	id, _ := call.Get("id")
	if !value.Truth(id) {
		id, _ = call.Get("call_id")
	}
	return toolCallAction(id, name, args)
}

func toolCallAction(id, name, args Value) (Action, error) {
	call := Pairs("id", id, "name", name, "arguments", args)
	a, _, err := schema.Validate(Value(call), schema.Model("Action", func(f *schema.Fields) Action {
		return Action{
			ID:        schema.Optional(f, "id", schema.Str),
			Name:      schema.Required(f, "name", schema.Str),
			Arguments: schema.Required(f, "arguments", schema.Object),
		}
	}))
	return a, typed.Invalid(a.TypeName(), err)
}

func callArguments(source *Object) (Value, error) {
	args, _ := source.Get("arguments")
	if !value.Truth(args) {
		return value.NewObject(0), nil
	}
	if s, ok := args.(Str); ok {
		return value.DecodeText(string(s))
	}
	return args, nil
}
