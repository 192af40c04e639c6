package reward

import (
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/value"
)

// MaxProblems bounds how many problems of a document are kept and described;
// all are counted.
const MaxProblems = 1000

// A Problem is one entry of a ValidationError.
type Problem struct {
	Type  string   // pydantic's error type, for example "float_parsing"
	Loc   []string // where: "rewards", the reward's name, the type tried
	Input value.Value
}

// The error types and what pydantic 2.13 says of them.
var sentences = map[string]string{
	"dict_type":      "Input should be a valid dictionary",
	"float_type":     "Input should be a valid number",
	"int_type":       "Input should be a valid integer",
	"float_parsing":  "Input should be a valid number, unable to parse string as a number",
	"int_parsing":    "Input should be a valid integer, unable to parse string as an integer",
	"string_unicode": "Input should be a valid string, unable to parse raw data as a unicode string",
}

// validate makes rewards of a value as pydantic does for a field of type
// dict[str, float | int] | None: null is nil, ints and floats stay as they are,
// booleans and text with a number in it become numbers. Everything else is an
// *Error of kind Invalid that lists every problem. (Reward semantics, section 5.)
func validate(v value.Value) (*Rewards, error) {
	if value.IsNull(v) {
		return nil, nil
	}
	o, ok := v.(*value.Object)
	if !ok {
		e := &Error{Kind: Invalid, Total: 1, Problems: []Problem{{"dict_type", []string{"rewards"}, v}}}
		e.Message = e.describe()
		return nil, e
	}
	r := &Rewards{values: *value.NewObject(o.Len())}
	e := &Error{Kind: Invalid}
	for name, v := range o.All() {
		x, reason := coerce(v)
		if x == nil {
			e.add(name, reason, v)
			continue
		}
		r.Set(name, x)
	}
	if e.Total > 0 {
		e.Message = e.describe()
		return nil, e
	}
	return r, nil
}

// coerce returns the number that a value stands for, or nil and the reason why
// there is none.
func coerce(v value.Value) (x value.Number, reason string) {
	switch v := v.(type) {
	case value.Int:
		return v, ""
	case value.Float:
		return v, ""
	case value.Bool:
		if v {
			return value.Float(1), ""
		}
		return value.Float(0), ""
	case value.Str:
		s := string(v)
		if value.HasSurrogate(s) {
			return nil, "unicode"
		}
		if f, ok := value.LaxFloat(s); ok {
			return f, ""
		}
		if n, ok := value.LaxInt(s); ok {
			return n, ""
		}
		return nil, "parsing"
	}
	return nil, "type"
}

// add records the two problems of one value, one per type tried.
func (e *Error) add(name, reason string, v value.Value) {
	for _, tried := range []string{"float", "int"} {
		e.Total++
		if len(e.Problems) >= MaxProblems {
			continue
		}
		kind := tried + "_" + reason
		if reason == "unicode" {
			kind = "string_unicode"
		}
		e.Problems = append(e.Problems, Problem{kind, []string{"rewards", name, tried}, v})
	}
}

// describe renders a ValidationError as pydantic does. Other programs match its
// first line only; the rest is for people.
func (e *Error) describe() string {
	var b strings.Builder
	plural := "s"
	if e.Total == 1 {
		plural = ""
	}
	fmt.Fprintf(&b, "%d validation error%s for VerifierResult", e.Total, plural)
	for _, p := range e.Problems {
		loc := slices.Clone(p.Loc)
		for i, part := range loc {
			if strings.Contains(part, ".") {
				loc[i] = "`" + part + "`"
			}
		}
		fmt.Fprintf(&b, "\n%s\n  %s [type=%s, input_value=%s, input_type=%s]\n    For further information visit https://errors.pydantic.dev/2.13/v/%s",
			lossy(strings.Join(loc, ".")), sentences[p.Type], p.Type, value.ShortRepr(value.Repr(p.Input)), value.TypeName(p.Input), p.Type)
	}
	if more := e.Total - len(e.Problems); more > 0 {
		fmt.Fprintf(&b, "\n(%d more)", more)
	}
	return b.String()
}

// lossy replaces each byte of a lone surrogate by U+FFFD.
func lossy(s string) string {
	return string([]rune(s))
}
