package typed

import (
	"iter"
	"reflect"

	"github.com/proctor-run/proctor/value"
)

// Map is an ordered map for fields of typed objects whose keys are free and
// whose values are all of one field type. The zero value is empty and ready.
type Map[T any] struct {
	keys   []string
	values map[string]T
}

// MapOf returns a map with one entry per key; values are by position.
func MapOf[T any](keys []string, values []T) Map[T] {
	var m Map[T]
	for i, k := range keys {
		m.Set(k, values[i])
	}
	return m
}

// Get returns the value of a key.
func (m Map[T]) Get(key string) (T, bool) {
	v, ok := m.values[key]
	return v, ok
}

// Set gives a key a value: at its place, or at the end when it is new.
func (m *Map[T]) Set(key string, value T) {
	if m.values == nil {
		m.values = map[string]T{}
	}
	if _, ok := m.values[key]; !ok {
		m.keys = append(m.keys, key)
	}
	m.values[key] = value
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

func (m *Map[T]) decode(d *decoder, v value.Value) {
	obj, ok := v.(*value.Object)
	if !ok {
		d.fail("dict_type", "Input should be an object")
		return
	}
	elem, err := codecOf(reflect.TypeFor[T](), fieldTag{options: []string{"required"}})
	if err != nil {
		d.failWith("value_error", err)
		return
	}
	*m = Map[T]{}
	for k, v := range obj.All() {
		var item T
		d.enter(k)
		elem.dec(d, v, reflect.ValueOf(&item).Elem())
		d.leave()
		m.Set(k, item)
	}
}

func (m *Map[T]) encode(e *encoder) value.Value {
	elem, err := codecOf(reflect.TypeFor[T](), fieldTag{})
	if err != nil {
		e.fail(err.Error())
		return value.Null{}
	}
	out := value.NewObject(len(m.keys))
	for k, item := range m.All() {
		out.Append(k, elem.enc(e, reflect.ValueOf(&item).Elem()))
	}
	return out
}
