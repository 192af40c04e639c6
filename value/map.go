package value

import "iter"

// Map is a string-keyed map that remembers the order of its keys, for fields of
// formats whose keys are free and whose values are all of one kind. The zero
// value is empty and ready to use; copies share what they hold.
type Map[T any] struct {
	keys   []string
	values map[string]T
}

// Get returns the value of a key.
func (m Map[T]) Get(key string) (T, bool) {
	v, ok := m.values[key]
	return v, ok
}

// Set sets the value of a key. A new key goes last, an old one keeps its place.
func (m *Map[T]) Set(key string, v T) {
	if m.values == nil {
		m.values = map[string]T{}
	}
	if _, ok := m.values[key]; !ok {
		m.keys = append(m.keys, key)
	}
	m.values[key] = v
}

// Len returns the number of keys.
func (m Map[T]) Len() int { return len(m.keys) }

// All yields keys and values in order.
func (m Map[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, k := range m.keys {
			if !yield(k, m.values[k]) {
				return
			}
		}
	}
}

// Clone returns a copy that shares no structure with m; the values themselves
// are copied by assignment.
func (m Map[T]) Clone() Map[T] {
	var out Map[T]
	for k, v := range m.All() {
		out.Set(k, v)
	}
	return out
}
