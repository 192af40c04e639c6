package typed

import (
	"reflect"

	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// Map is an ordered map for fields of typed objects whose keys are free and
// whose values are all of one field type. The zero value is empty and ready.
type Map[T any] struct{ value.Map[T] }

// MapOf returns a map with one entry per key; values are by position.
func MapOf[T any](keys []string, values []T) Map[T] {
	var m Map[T]
	for i, k := range keys {
		m.Set(k, values[i])
	}
	return m
}

// mapping is a [Map] of any type.
type mapping interface {
	elem() reflect.Type
	codec() (codec, error)
}

func (*Map[T]) elem() reflect.Type { return reflect.TypeFor[T]() }

func (*Map[T]) codec() (codec, error) {
	item, err := codecOf(reflect.TypeFor[T](), fieldTag{options: []string{"required"}})
	if err != nil {
		return codec{}, err
	}
	dec := func(r *Registry, c *schema.Cursor, v value.Value, dst reflect.Value) bool {
		items, ok := schema.Dict(item.dec.into(reflect.TypeFor[T](), r))(c, v)
		if !ok {
			return false
		}
		var m Map[T]
		for k, v := range items.All() {
			m.Set(k, *v.Addr().Interface().(*T))
		}
		dst.Set(reflect.ValueOf(m))
		return true
	}
	enc := func(e *encoder, v reflect.Value) value.Value {
		m := v.Interface().(Map[T])
		out := value.NewObject(m.Len())
		for k, v := range m.All() {
			out.Append(k, item.enc(e, reflect.ValueOf(&v).Elem()))
		}
		return out
	}
	return codec{dec, enc}, nil
}
