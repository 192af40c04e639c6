package outcome

import (
	"math"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/value"
)

// Prefix begins the line by which a producer hands on its outcome. Consumers
// look for it at the start of a line.
const Prefix = "BASE_BENCHMARK_RESULT="

// Line returns the result line, without a line end (outcome mapping, section 3).
// The error is that of a number with more digits than Python turns into text;
// the reference prints nothing then.
func (o Outcome) Line() (string, error) { return line(o.Object()) }

// LineWith is [Outcome.Line] with a field more. Consumers take no notice of fields that
// they do not know (outcome mapping, section 4.1).
func (o Outcome) LineWith(field string, v value.Value) (string, error) {
	obj := o.Object()
	obj.Set(field, v)
	return line(obj)
}

// line writes a payload, names sorted.
func line(payload *value.Object) (string, error) {
	if err := checkDigits(payload); err != nil {
		return "", err
	}
	return string(value.AppendDumps([]byte(Prefix), payload, value.DumpsOptions{SortKeys: true})), nil
}

// checkDigits refuses ints that Python would not turn into text.
func checkDigits(v value.Value) error {
	switch v := v.(type) {
	case value.Int:
		digits := len(v.String())
		if v.Sign() < 0 {
			digits--
		}
		if digits > value.MaxIntDigits {
			return exception.Errorf(exception.ValueError, "Exceeds the limit (%d digits) for integer string conversion; use sys.set_int_max_str_digits() to increase the limit", value.MaxIntDigits)
		}
	case value.List:
		for _, item := range v {
			if err := checkDigits(item); err != nil {
				return err
			}
		}
	case *value.Object:
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
func Emit(payload value.Value) (string, error) {
	if err := validate(payload); err != nil {
		return "", err
	}
	return line(payload.(*value.Object))
}

// Coerce returns a payload as the reference's builder makes it of loosely typed
// numbers: an int score becomes a float, an integral float resolved or total
// becomes an int. Everything else stays, for [Emit] to refuse (outcome mapping,
// section 4.2).
func Coerce(payload *value.Object) *value.Object {
	out := value.NewObject(payload.Len())
	for key, v := range payload.All() {
		out.Set(key, coerceField(key, v))
	}
	return out
}

func coerceField(key string, v value.Value) value.Value {
	switch v := v.(type) {
	case value.Int:
		if f, err := v.Float64(); key == "score" && err == nil {
			return value.Float(f)
		}
	case value.Float:
		if key != "resolved" && key != "total" || float64(v) != math.Trunc(float64(v)) {
			break
		}
		if n, err := value.Truncate(float64(v)); err == nil {
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
func (e *SchemaError) ErrorType() string { return exception.ResultSchemaError }

// validate checks a payload against the schema of a result: an object with the
// five fields of an [Outcome], the score within 0 to 1, the counts not negative.
// Fields may be added. There is no rule across fields. (Outcome mapping, section
// 4.1.)
func validate(payload value.Value) error {
	obj, ok := payload.(*value.Object)
	if !ok {
		return &SchemaError{"<root>", "expected object, got " + value.TypeName(payload)}
	}
	fields := []struct {
		name  string
		check func(value.Value) string
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

func wrongType(want string, v value.Value) string {
	return "expected type " + want + ", got " + value.TypeName(v)
}

func checkStatus(v value.Value) string {
	s, ok := v.(value.Str)
	if !ok {
		return wrongType("'string'", v)
	}
	if Status(s) != Completed && Status(s) != Failed {
		return value.Repr(s) + " not in enum ['completed', 'failed']"
	}
	return ""
}

// checkScore lets nan pass, as a comparison in Python does.
func checkScore(v value.Value) string {
	x, ok := number(v)
	if !ok {
		return wrongType("'number'", v)
	}
	if c, ordered := value.Compare(x, value.Float(0)); ordered && c < 0 {
		return value.Repr(x) + " < minimum 0.0"
	}
	if c, ordered := value.Compare(x, value.Float(1)); ordered && c > 0 {
		return value.Repr(x) + " > maximum 1.0"
	}
	return ""
}

func checkCount(v value.Value) string {
	n, ok := v.(value.Int)
	if !ok {
		return wrongType("'integer'", v)
	}
	if n.Sign() < 0 {
		return value.Repr(n) + " < minimum 0"
	}
	return ""
}

func checkReason(v value.Value) string {
	if _, ok := v.(value.Str); ok || value.IsNull(v) {
		return ""
	}
	return wrongType("['string', 'null']", v)
}

// oneLine puts text on one physical line: line ends become spaces, of which CR
// LF gives two.
func oneLine(text string) string {
	return strings.Join(lines(strings.ReplaceAll(text, "\r", "\n")), " ")
}
