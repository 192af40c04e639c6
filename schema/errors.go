package schema

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/value"
)

// docsURL is where the texts of pydantic 2.13 send their readers. Recorded
// exception messages contain it.
const docsURL = "https://errors.pydantic.dev/2.13/v/"

// Location is a path into a document: strings for keys and union branches,
// ints for list indexes.
type Location []any

// String joins the path with dots.
func (l Location) String() string {
	var b strings.Builder
	for i, elem := range l {
		if i > 0 {
			b.WriteByte('.')
		}
		switch e := elem.(type) {
		case int:
			b.WriteString(strconv.Itoa(e))
		case string:
			b.WriteString(e)
		}
	}
	return b.String()
}

// Error is one reason why a document is not valid.
type Error struct {
	Loc   Location
	Type  string // pydantic's error type, for example "int_parsing"
	Msg   string
	Input value.Value // the offending value, or for "missing" the table around it
	Err   error       // what a rule returned; nil for all else
}

// Errors is what [Validate] returns for a document that is not valid.
type Errors struct {
	Title string // name of the model
	List  []Error
}

// Error renders all errors as pydantic does: a heading with their number, then
// per error its location, its message and its input. Strings under keys that
// look like credentials are masked in the inputs.
func (e *Errors) Error() string {
	var b strings.Builder
	plural := "s"
	if len(e.List) == 1 {
		plural = ""
	}
	fmt.Fprintf(&b, "%d validation error%s for %s", len(e.List), plural, e.Title)
	for i := range e.List {
		item := &e.List[i]
		if len(item.Loc) > 0 {
			b.WriteString("\n" + item.Loc.String())
		}
		fmt.Fprintf(&b, "\n  %s [type=%s, input_value=%s, input_type=%s]", item.Msg, item.Type,
			value.ShortRepr(inputRepr(item)), pythonType(item.Input))
		b.WriteString("\n    For further information visit " + docsURL + item.Type)
	}
	return b.String()
}

// ErrorType returns the name of pydantic's exception, which results record.
func (e *Errors) ErrorType() string { return exception.ValidationError }

// Unwrap returns what rules returned.
func (e *Errors) Unwrap() []error {
	var causes []error
	for _, item := range e.List {
		if item.Err != nil {
			causes = append(causes, item.Err)
		}
	}
	return causes
}

// PlainText renders the errors for people: on one line, or several below a line with
// their number, each as its location, what is wrong and the offending value.
func (e *Errors) PlainText() string {
	if len(e.List) == 1 {
		return plainProblem(&e.List[0])
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d problems", len(e.List))
	for i := range e.List {
		b.WriteString("\n  " + plainProblem(&e.List[i]))
	}
	return b.String()
}

func plainProblem(e *Error) string {
	text := e.Msg
	switch e.Type {
	case "model_type", "dict_type":
		text = "Input should be a table of keys and values"
	case "path_type":
		text = "Input should be a path"
	case "missing":
		text = "it is required"
	}
	if rest, ok := strings.CutPrefix(text, "Input should be "); ok {
		text = "should be " + rest
		switch e.Input.(type) {
		case *value.Object, value.List, nil:
		default:
			text += " (it is " + value.ShortRepr(inputRepr(e)) + ")"
		}
	}
	text = strings.TrimPrefix(text, "Value error, ")
	if len(e.Loc) > 0 {
		return e.Loc.String() + ": " + text
	}
	return text
}

// Brief renders each error on one line as "location: message".
func (e *Errors) Brief() []string {
	lines := make([]string, len(e.List))
	for i, item := range e.List {
		lines[i] = item.Msg
		if len(item.Loc) > 0 {
			lines[i] = item.Loc.String() + ": " + item.Msg
		}
	}
	return lines
}

func inputRepr(e *Error) string {
	v := e.Input
	if _, isText := v.(value.Str); isText && len(e.Loc) > 0 {
		if key, ok := e.Loc[len(e.Loc)-1].(string); ok && Sensitive(key) {
			v = value.Str(mask)
		}
	}
	return repr(v)
}

const mask = "****"

// Sensitive reports whether a key, by its name, holds a credential: it
// contains KEY, SECRET, TOKEN, PASSWORD, CREDENTIAL or AUTH in any letter case.
func Sensitive(key string) bool {
	upper := strings.ToUpper(key)
	for _, word := range [...]string{"KEY", "SECRET", "TOKEN", "PASSWORD", "CREDENTIAL", "AUTH"} {
		if strings.Contains(upper, word) {
			return true
		}
	}
	return false
}

// repr is Python's repr with strings under sensitive keys masked.
func repr(v value.Value) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case Temporal:
		return v.Repr
	case value.List:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = repr(item)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case *value.Object:
		var parts []string
		for key, item := range v.All() {
			if _, isText := item.(value.Str); isText && Sensitive(key) {
				item = value.Str(mask)
			}
			parts = append(parts, value.Repr(value.Str(key))+": "+repr(item))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	default:
		return value.Repr(v)
	}
}

func pythonType(v value.Value) string {
	if t, ok := v.(Temporal); ok {
		return string(t.Kind)
	}
	return value.TypeName(v)
}
