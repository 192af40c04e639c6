package toml

import (
	"slices"
	"strings"

	"github.com/proctor-run/proctor/value"
)

// mark says why a name takes no more additions.
type mark uint8

const (
	declared mark = 1 << iota // its table has had a header
	frozen                    // its value was given as a whole
)

// namespace remembers marks by dotted key.
type namespace struct {
	own, below mark // below also holds for everything inside
	inner      map[string]*namespace
}

func (n *namespace) is(key []string, m mark) bool {
	if len(key) == 0 {
		return false
	}
	for i, part := range key {
		next := n.inner[part]
		if next == nil {
			return false
		}
		if next.below&m != 0 || (i == len(key)-1 && next.own&m != 0) {
			return true
		}
		n = next
	}
	return false
}

func (n *namespace) set(key []string, m mark, recursive bool) {
	for _, part := range key {
		if n.inner == nil {
			n.inner = map[string]*namespace{}
		}
		next := n.inner[part]
		if next == nil {
			next = &namespace{}
			n.inner[part] = next
		}
		n = next
	}
	if recursive {
		n.below |= m
		return
	}
	n.own |= m
}

// forget drops the marks of a key and of everything inside it.
func (n *namespace) forget(key []string) {
	for _, part := range key[:len(key)-1] {
		if n = n.inner[part]; n == nil {
			return
		}
	}
	delete(n.inner, key[len(key)-1])
}

// descend returns the table at key, made where it is missing. With lists, a
// list stands for its last table. It fails where something else is in the way.
func descend(t *value.Object, key []string, lists bool) (*value.Object, bool) {
	for _, part := range key {
		next, ok := t.Get(part)
		if !ok {
			inner := &value.Object{}
			t.Set(part, inner)
			t = inner
			continue
		}
		if list, isList := next.(value.List); isList && lists && len(list) > 0 {
			next = list[len(list)-1]
		}
		if t, ok = next.(*value.Object); !ok {
			return nil, false
		}
	}
	return t, true
}

// appendTable adds an empty table to the array of tables at key.
func appendTable(root *value.Object, key []string) bool {
	last := len(key) - 1
	t, ok := descend(root, key[:last], true)
	if !ok {
		return false
	}
	var list value.List
	if old, exists := t.Get(key[last]); exists {
		if list, ok = old.(value.List); !ok {
			return false
		}
	}
	t.Set(key[last], append(list, &value.Object{}))
	return true
}

func isContainer(v value.Value) bool {
	switch v.(type) {
	case value.List, *value.Object:
		return true
	}
	return false
}

func join(a, b []string) []string { return slices.Concat(a, b) }

// reprKey spells a key as Python spells a tuple of strings.
func reprKey(key []string) string {
	parts := make([]string, len(key))
	for i, part := range key {
		parts[i] = value.Repr(value.Str(part))
	}
	if len(parts) == 1 {
		return "(" + parts[0] + ",)"
	}
	return "(" + strings.Join(parts, ", ") + ")"
}
