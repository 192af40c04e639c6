package value

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
