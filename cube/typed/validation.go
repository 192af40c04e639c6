package typed

import (
	"errors"
	"fmt"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// Loc is a path into a JSON document: field names and list indexes.
type Loc []string

// String joins the path with dots: "contents.1.data".
func (l Loc) String() string { return strings.Join(l, ".") }

// FieldError is one thing that is wrong with a document.
type FieldError struct {
	// Loc is where; empty means the document itself.
	Loc Loc
	// Type is the reference's error type: "missing", "value_error",
	// "int_parsing", …
	Type string
	// Msg says what was expected.
	Msg string
	// Err, when set, is the error behind it: an [*UnknownTypeError], an
	// [*ImageError], what a Validate method returned.
	Err error
}

func (e FieldError) String() string {
	if len(e.Loc) == 0 {
		return e.Msg
	}
	return e.Loc.String() + ": " + e.Msg
}

// ValidationError lists everything that is wrong with a document, in the order
// of its fields (CUBE, section 1.1).
type ValidationError struct {
	// Type names the type that was asked for, "cube.core.Action".
	Type   string
	Errors []FieldError
}

// Error renders one line per error, each with the JSON path.
func (e *ValidationError) Error() string {
	if len(e.Errors) == 1 {
		return fmt.Sprintf("reading %s: %s", e.Type, e.Errors[0])
	}
	var b strings.Builder
	fmt.Fprintf(&b, "reading %s: %d errors", e.Type, len(e.Errors))
	for _, f := range e.Errors {
		b.WriteString("\n  " + f.String())
	}
	return b.String()
}

// ErrorType returns "ValidationError".
func (e *ValidationError) ErrorType() string { return exception.ValidationError }

// Unwrap returns the errors behind the field errors.
func (e *ValidationError) Unwrap() []error {
	var causes []error
	for _, f := range e.Errors {
		if f.Err != nil {
			causes = append(causes, f.Err)
		}
	}
	return causes
}

// maxShownPath bounds what a message shows of a _type value, in bytes.
const maxShownPath = 300

// UnknownTypeError reports a _type value that cannot be used: not a string,
// without a dot, or not the name of a registered type that fits the slot.
type UnknownTypeError struct {
	// Path is the value of _type; what is no string is shown in Python's
	// notation.
	Path string
	// Declared is the simple name of the type that the slot holds.
	Declared string
}

// Error is the reference's text for a path that is no suitable type.
func (e *UnknownTypeError) Error() string {
	path := e.Path
	if len(path) > maxShownPath {
		path = strings.ToValidUTF8(path[:maxShownPath], "") + "…"
	}
	return fmt.Sprintf("Cannot deserialize '%s': class must be a subclass of '%s'.", path, e.Declared)
}

// ErrorType returns "UnknownTypeError".
func (e *UnknownTypeError) ErrorType() string { return "UnknownTypeError" }

// report records what a field type of another package found.
func report(c *schema.Cursor, err error, input value.Value) {
	invalid, ok := errors.AsType[*ValidationError](err)
	if !ok {
		c.Reject(err, input)
		return
	}
	for _, e := range invalid.Errors {
		at := c
		for _, elem := range e.Loc {
			at = at.Child(elem)
		}
		at.Report(schema.Error{Type: e.Type, Msg: e.Msg, Input: input, Err: e.Err})
	}
}

// Invalid returns the error of a validation by package schema as a
// [*ValidationError] of the type that was asked for.
func Invalid(name string, err error) error {
	list, ok := errors.AsType[*schema.Errors](err)
	if !ok {
		return err
	}
	out := &ValidationError{Type: name}
	for _, e := range list.List {
		f := FieldError{Loc: make(Loc, 0, len(e.Loc)), Type: e.Type, Msg: e.Msg, Err: e.Err}
		for _, elem := range e.Loc {
			f.Loc = append(f.Loc, fmt.Sprint(elem))
		}
		out.Errors = append(out.Errors, f)
	}
	return out
}
