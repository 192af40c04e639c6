package typed

import (
	"reflect"
	"strings"
)

// ClassName is the class name of a value in messages: the end of its TypeName,
// or its Go type without package, pointer and type parameters.
func ClassName(v any) string {
	if typed, ok := v.(Typed); ok {
		if name, err := simpleName(typed.TypeName()); err == nil {
			return name
		}
	}
	t := reflect.TypeOf(v)
	if t == nil {
		return "NoneType"
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name, _, _ := strings.Cut(t.Name(), "[")
	if name == "" {
		name = t.String()
	}
	return name
}
