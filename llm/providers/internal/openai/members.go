package openai

import (
	"encoding/json"
	"strconv"

	"github.com/proctor-run/proctor/value"
)

// members are those of a JSON object. Servers take liberties with the protocol: what is
// of another kind than it should be counts as absent.
type members map[string]json.RawMessage

// object reads an object; nil for anything else.
func object(raw json.RawMessage) members {
	var m members
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

// list is a member that is a list of objects.
func (m members) list(key string) []members {
	var raw []json.RawMessage
	if json.Unmarshal(m[key], &raw) != nil {
		return nil
	}
	out := make([]members, len(raw))
	for i := range raw {
		out[i] = object(raw[i])
	}
	return out
}

// text is a member that is text.
func (m members) text(key string) string {
	var s string
	if json.Unmarshal(m[key], &s) != nil {
		return ""
	}
	return s
}

// number is a member that is a number of at least 0; nil for anything else.
func (m members) number(key string) *float64 {
	var f *float64
	if json.Unmarshal(m[key], &f) != nil || f == nil || *f < 0 {
		return nil
	}
	return f
}

// whole is a member that counts something.
func (m members) whole(key string) int64 {
	f := m.number(key)
	if f == nil || *f > 1<<53 {
		return 0
	}
	return int64(*f)
}

// numbers is a member that is a list of whole numbers; nil for anything else.
func (m members) numbers(key string) []int64 {
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

// value is a member as it is; nil where it is null or absent.
func (m members) value(key string) value.Value {
	v, err := value.Decode(m[key])
	if err != nil || value.IsNull(v) {
		return nil
	}
	return v
}
