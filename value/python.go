package value

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns Python's str(v): text is itself, everything else its [Repr].
func Text(v Value) string {
	if s, ok := v.(Str); ok {
		return string(s)
	}
	return Repr(v)
}

// Truth returns Python's bool(v): None, False, zeros and everything empty are
// false.
func Truth(v Value) bool {
	switch v := v.(type) {
	case Bool:
		return bool(v)
	case Int:
		return v.Sign() != 0
	case Float:
		return v != 0
	case Str:
		return v != ""
	case List:
		return len(v) > 0
	case *Object:
		return v.Len() > 0
	}
	return false
}

// Clone copies a value so that changes of one are not seen in the other.
func Clone(v Value) Value {
	switch v := v.(type) {
	case List:
		out := make(List, len(v))
		for i, item := range v {
			out[i] = Clone(item)
		}
		return out
	case *Object:
		return v.Clone()
	}
	return v
}

// Clone copies an object at every depth; a nil one becomes empty.
func (o *Object) Clone() *Object {
	if o == nil {
		return NewObject(1)
	}
	out := NewObject(o.Len() + 1)
	for k, v := range o.All() {
		out.Append(k, Clone(v))
	}
	return out
}

// IsSpace is Python's str.isspace of one character: Unicode white space and the
// four ASCII separators, which Go's unicode.IsSpace lacks.
func IsSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// Strip is Python's str.strip.
func Strip(s string) string { return strings.TrimFunc(s, IsSpace) }

// ShortRepr cuts the middle out of a long representation, between characters,
// as pydantic's error texts do: 50 bytes stay, 25 at the front and 24 at the back
// when it is cut.
func ShortRepr(repr string) string {
	const longest, front, back = 50, 25, 24
	if len(repr) <= longest {
		return repr
	}
	head, tail := front, len(repr)-back
	for !utf8.RuneStart(repr[head]) {
		head--
	}
	for tail < len(repr) && !utf8.RuneStart(repr[tail]) {
		tail++
	}
	return repr[:head] + "..." + repr[tail:]
}
