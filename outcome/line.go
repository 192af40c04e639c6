package outcome

import (
	"math"
	"strings"

	"github.com/proctor-run/proctor/internal/pyvalue"
)

// Prefix begins the line by which a producer hands on its outcome. Consumers
// look for it at the start of a line.
const Prefix = "BASE_BENCHMARK_RESULT="

// Line returns the result line, without a line end (outcome mapping, section 3).
// The error is that of a number with more digits than Python turns into text;
// the reference prints nothing then.
func (o Outcome) Line() (string, error) { return line(o.Object()) }

// line writes a payload, names sorted.
func line(payload *pyvalue.Object) (string, error) {
	if err := checkDigits(payload); err != nil {
		return "", err
	}
	return string(pyvalue.AppendDumps([]byte(Prefix), payload, pyvalue.DumpsOptions{SortKeys: true})), nil
}

// checkDigits refuses ints that Python would not turn into text.
func checkDigits(v pyvalue.Value) error {
	switch v := v.(type) {
	case pyvalue.Int:
		digits := len(v.String())
		if v.Sign() < 0 {
			digits--
		}
		if digits > pyvalue.MaxIntDigits {
			return raise(pyvalue.ValueError, "Exceeds the limit (%d digits) for integer string conversion; use sys.set_int_max_str_digits() to increase the limit", pyvalue.MaxIntDigits)
		}
	case pyvalue.List:
		for _, item := range v {
			if err := checkDigits(item); err != nil {
				return err
			}
		}
	case *pyvalue.Object:
		for _, item := range v.All() {
			if err := checkDigits(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// Emit validates a payload and returns its result line, without a line end. An
// invalid payload never becomes one: the error is a [SchemaError]. Additional
// fields are written along (outcome mapping, sections 3 and 4).
func Emit(payload pyvalue.Value) (string, error) {
	if err := Validate(payload); err != nil {
		return "", err
	}
	return line(payload.(*pyvalue.Object))
}

// Coerce returns a payload as the reference's builder makes it of loosely typed
// numbers: an int score becomes a float, an integral float resolved or total
// becomes an int. Everything else stays, for [Emit] to refuse (outcome mapping,
// section 4.2).
func Coerce(payload *pyvalue.Object) *pyvalue.Object {
	out := pyvalue.NewObject(payload.Len())
	for key, v := range payload.All() {
		out.Set(key, coerceField(key, v))
	}
	return out
}

func coerceField(key string, v pyvalue.Value) pyvalue.Value {
	switch v := v.(type) {
	case pyvalue.Int:
		if f, err := v.Float64(); key == "score" && err == nil {
			return pyvalue.Float(f)
		}
	case pyvalue.Float:
		if key != "resolved" && key != "total" || float64(v) != math.Trunc(float64(v)) {
			break
		}
		if n, err := pyvalue.Truncate(float64(v)); err == nil {
			return n
		}
	}
	return v
}

// SchemaError says how a payload breaks the result schema. Only the first
// violation is reported.
type SchemaError struct {
	Path    string // the field, or "<root>"
	Problem string
}

func (e *SchemaError) Error() string { return e.Path + ": " + e.Problem }

// ErrorType is the name under which the reference raises it.
func (e *SchemaError) ErrorType() string { return "ResultSchemaError" }

// Validate checks a payload against the schema of a result: an object with the
// five fields of an [Outcome], the score within 0 to 1, the counts not negative.
// Fields may be added. There is no rule across fields. (Outcome mapping, section
// 4.1.)
func Validate(payload pyvalue.Value) error {
	obj, ok := payload.(*pyvalue.Object)
	if !ok {
		return &SchemaError{"<root>", "expected object, got " + pyvalue.TypeName(payload)}
	}
	fields := []struct {
		name  string
		check func(pyvalue.Value) string
	}{
		{"status", checkStatus},
		{"score", checkScore},
		{"resolved", checkCount},
		{"total", checkCount},
		{"reason_code", checkReason},
	}
	for _, f := range fields {
		if !obj.Has(f.name) {
			return &SchemaError{"<root>", "missing required field '" + f.name + "'"}
		}
	}
	for _, f := range fields {
		v, _ := obj.Get(f.name)
		if problem := f.check(v); problem != "" {
			return &SchemaError{f.name, problem}
		}
	}
	return nil
}

func wrongType(want string, v pyvalue.Value) string {
	return "expected type " + want + ", got " + pyvalue.TypeName(v)
}

func checkStatus(v pyvalue.Value) string {
	s, ok := v.(pyvalue.Str)
	if !ok {
		return wrongType("'string'", v)
	}
	if Status(s) != Completed && Status(s) != Failed {
		return pyvalue.Repr(s) + " not in enum ['completed', 'failed']"
	}
	return ""
}

// checkScore lets nan pass, as a comparison in Python does.
func checkScore(v pyvalue.Value) string {
	x, ok := number(v)
	if !ok {
		return wrongType("'number'", v)
	}
	if c, ordered := pyvalue.Compare(x, pyvalue.Float(0)); ordered && c < 0 {
		return pyvalue.Repr(x) + " < minimum 0.0"
	}
	if c, ordered := pyvalue.Compare(x, pyvalue.Float(1)); ordered && c > 0 {
		return pyvalue.Repr(x) + " > maximum 1.0"
	}
	return ""
}

func checkCount(v pyvalue.Value) string {
	n, ok := v.(pyvalue.Int)
	if !ok {
		return wrongType("'integer'", v)
	}
	if n.Sign() < 0 {
		return pyvalue.Repr(n) + " < minimum 0"
	}
	return ""
}

func checkReason(v pyvalue.Value) string {
	if _, ok := v.(pyvalue.Str); ok || pyvalue.IsNull(v) {
		return ""
	}
	return wrongType("['string', 'null']", v)
}

// oneLine puts text on one physical line: line ends become spaces, of which CR
// LF gives two.
func oneLine(text string) string {
	return strings.Join(lines(strings.ReplaceAll(text, "\r", "\n")), " ")
}
