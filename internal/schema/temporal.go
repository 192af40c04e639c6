package schema

import "github.com/proctor-run/proctor/internal/pyvalue"

// TemporalKind is the Python type of a date or time.
type TemporalKind string

// The kinds of dates and times that TOML and YAML documents can hold.
const (
	KindDate     TemporalKind = "date"
	KindTime     TemporalKind = "time"
	KindDateTime TemporalKind = "datetime"
)

// Temporal is a date or time in a TOML or YAML document. No scalar accepts it;
// where anything is allowed ([Any], [Object]) it becomes its ISO string.
type Temporal struct {
	pyvalue.Value // the ISO string, so that a Temporal is a value itself

	Kind TemporalKind
	Repr string // Python's representation, for error texts
}

// NewTemporal makes a date or time from its ISO 8601 spelling.
func NewTemporal(kind TemporalKind, iso, repr string) Temporal {
	return Temporal{Value: pyvalue.Str(iso), Kind: kind, Repr: repr}
}

// plain returns v with every Temporal in it replaced by its ISO string. Values
// without one are returned as they are.
func plain(v pyvalue.Value) pyvalue.Value {
	switch v := v.(type) {
	case Temporal:
		return v.Value
	case pyvalue.List:
		out := make(pyvalue.List, len(v))
		for i, item := range v {
			out[i] = plain(item)
		}
		return out
	case *pyvalue.Object:
		out := &pyvalue.Object{}
		for key, item := range v.All() {
			out.Set(key, plain(item))
		}
		return out
	case nil:
		return pyvalue.Null{}
	default:
		return v
	}
}
