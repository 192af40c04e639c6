package wire

import (
	"encoding/json"
	"strconv"

	"github.com/proctor-run/proctor/value"
)

// Members are those of a JSON object. Servers take liberties with the protocol: what is
// of another kind than it should be counts as absent.
type Members map[string]json.RawMessage

// Object reads an object; nil for anything else.
func Object(raw json.RawMessage) Members {
	var m Members
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

// List is a member that is a list of objects.
func (m Members) List(key string) []Members {
	var raw []json.RawMessage
	if json.Unmarshal(m[key], &raw) != nil {
		return nil
	}
	out := make([]Members, len(raw))
	for i := range raw {
		out[i] = Object(raw[i])
	}
	return out
}

// Text is a member that is text.
func (m Members) Text(key string) string {
	var s string
	if json.Unmarshal(m[key], &s) != nil {
		return ""
	}
	return s
}

// Number is a member that is a number of at least 0; nil for anything else.
func (m Members) Number(key string) *float64 {
	var f *float64
	if json.Unmarshal(m[key], &f) != nil || f == nil || *f < 0 {
		return nil
	}
	return f
}

// Whole is a member that counts something.
func (m Members) Whole(key string) int64 {
	f := m.Number(key)
	if f == nil || *f > 1<<53 {
		return 0
	}
	return int64(*f)
}

// Numbers is a member that is a list of whole numbers; nil for anything else.
func (m Members) Numbers(key string) []int64 {
	var raw []json.Number
	if json.Unmarshal(m[key], &raw) != nil {
		return nil
	}
	var out []int64
	for _, n := range raw {
		i, err := strconv.ParseInt(n.String(), 10, 64)
		if err != nil {
			return nil
		}
		out = append(out, i)
	}
	return out
}

// Value is a member as it is; nil where it is null or absent.
func (m Members) Value(key string) value.Value {
	v, err := value.Decode(m[key])
	if err != nil || value.IsNull(v) {
		return nil
	}
	return v
}
