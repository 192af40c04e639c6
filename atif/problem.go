package atif

import (
	"errors"
	"fmt"

	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// A Problem is one reason why a trajectory is not valid.
type Problem struct {
	// Location is where it is, "trajectory.steps.0.message"; it is empty for a
	// document as a whole that is no trajectory, and "trajectory." where a rule of
	// the whole trajectory is broken.
	Location string
	Message  string
}

// String is the problem as the validator of the reference prints it (section
// 6.4).
func (p Problem) String() string {
	if p.Location == "" {
		return p.Message
	}
	return p.Location + ": " + p.Message
}

// Invalid is the error of a document that is no valid trajectory.
type Invalid struct {
	// Problems are all that were found, in the order of the members; rules of a
	// whole object are checked when nothing else is wrong with it.
	Problems []Problem
}

// Error names the first problem.
func (e *Invalid) Error() string {
	if more := len(e.Problems) - 1; more > 0 {
		return fmt.Sprintf("%s (and %d more)", e.Problems[0], more)
	}
	return e.Problems[0].String()
}

func invalid(message string) *Invalid {
	return &Invalid{Problems: []Problem{{Message: message}}}
}

// root begins every location.
const root = "trajectory."

func asInvalid(err error) error {
	all, ok := errors.AsType[*schema.Errors](err)
	if !ok {
		return err
	}
	e := &Invalid{Problems: make([]Problem, len(all.List))}
	for i := range all.List {
		e.Problems[i] = Problem{Location: root + all.List[i].Loc.String(), Message: message(&all.List[i])}
	}
	return e
}

// typeNames are the errors that name the expected type and the one there is.
var typeNames = map[string]string{
	"string_type": "string", "int_type": "int", "float_type": "float", "dict_type": "dict", "list_type": "list",
}

// message is the text of section 6.4 for an error of pydantic.
func message(e *schema.Error) string {
	name, typed := typeNames[e.Type]
	switch {
	case e.Type == "missing":
		return "required field is missing"
	case e.Type == "extra_forbidden":
		return "unexpected field (not part of ATIF schema)"
	case value.IsNull(e.Input):
		return e.Msg
	case typed:
		return "expected " + name + " type, got " + value.TypeName(e.Input)
	case e.Type == "literal_error":
		return e.Msg + ", got '" + value.Text(e.Input) + "'"
	}
	return e.Msg
}
