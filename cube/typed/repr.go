package typed

import (
	"reflect"
	"strings"

	"github.com/proctor-run/proctor/value"
)

// FieldText returns Python's str() of a declared field of a value of a
// registered type. There is none when the type has no such field.
func (r *Registry) FieldText(v Typed, key string) (text string, found bool, err error) {
	shape, err := StructOf(reflect.TypeOf(v).Elem())
	if err != nil || !r.Has(v) || !shape.Has(key) {
		return "", false, nil
	}
	dump, err := Dump(v)
	if err != nil {
		return "", false, err
	}
	field, _ := dump.Get(key)
	if o, ok := field.(*value.Object); ok && r.isModel(o) {
		return r.modelFields(o, " "), true, nil
	}
	if _, isText := field.(value.Str); isText {
		return value.Text(field), true, nil
	}
	return r.modelRepr(field), true, nil
}

// isModel reports whether an object was written from a typed one.
func (r *Registry) isModel(o *value.Object) bool {
	_, ok := r.className(o)
	return ok
}

// className returns the class of a written typed object.
func (r *Registry) className(o *value.Object) (string, bool) {
	path, ok := o.Get(TypeKey)
	if !ok {
		return "", false
	}
	return r.ClassName(value.Text(path))
}

// modelRepr is Python's repr, in which typed objects are NAME(field=value, …).
func (r *Registry) modelRepr(v value.Value) string {
	switch v := v.(type) {
	case value.List:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = r.modelRepr(item)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case *value.Object:
		if name, ok := r.className(v); ok {
			return name + "(" + r.modelFields(v, ", ") + ")"
		}
		var parts []string
		for k, item := range v.All() {
			parts = append(parts, value.Repr(value.Str(k))+": "+r.modelRepr(item))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return value.Repr(v)
}

func (r *Registry) modelFields(o *value.Object, separator string) string {
	var parts []string
	for k, v := range o.All() {
		if k != TypeKey {
			parts = append(parts, k+"="+r.modelRepr(v))
		}
	}
	return strings.Join(parts, separator)
}
