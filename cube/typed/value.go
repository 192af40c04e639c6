package typed

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/value"
)

// Pairs returns an ordered map from alternating keys and values:
//
//	typed.Pairs("answer", 7, "correct", true)
//
// Values are what [ValueOf] takes. It panics when a key is not a string, a
// value is missing or is nothing that JSON can hold: those are mistakes in the
// program, and a panic in a hook or an action is turned into an error.
func Pairs(keysAndValues ...any) *value.Object {
	if len(keysAndValues)%2 != 0 {
		panic("typed.Pairs: a value is missing")
	}
	out := value.NewObject(len(keysAndValues) / 2)
	for i := 0; i < len(keysAndValues); i += 2 {
		key, ok := keysAndValues[i].(string)
		if !ok {
			panic(fmt.Sprintf("typed.Pairs: key %v is not a string", keysAndValues[i]))
		}
		Put(out, key, keysAndValues[i+1])
	}
	return out
}

// Put gives a key of an object a Go value, as [Pairs] takes them, at its old place
// if it has one and else at the end. Like Pairs it panics when the value is nothing
// that JSON can hold.
func Put(o *value.Object, key string, v any) {
	converted, err := ValueOf(v)
	if err != nil {
		panic(fmt.Sprintf("key %q of an object: %v", key, err))
	}
	o.Set(key, converted)
}

// ValueOf converts a Go value: nil, booleans, numbers, strings, slices, arrays,
// maps with string keys (written in key order), structs (fields in order, named
// by their json tags), typed objects (their dump, with _type), pointers to all
// of those, and Values themselves. Bytes and everything else are a TypeError.
func ValueOf(v any) (value.Value, error) { return valueOf(v, 0) }

func valueOf(v any, depth int) (value.Value, error) {
	if depth > maxDepth {
		return nil, exception.Errorf(exception.ValueError, "nested too deep")
	}
	switch v := v.(type) {
	case nil:
		return value.Null{}, nil
	case *value.Object:
		if v == nil {
			return value.NewObject(0), nil
		}
		return v, nil
	case value.Value:
		return v, nil
	case string:
		return value.Str(v), nil
	case bool:
		return value.Bool(v), nil
	case int:
		return value.NewInt(int64(v)), nil
	case float64:
		return value.Float(v), nil
	case json.RawMessage:
		return value.Decode(v)
	case Typed:
		return dumpValue(v)
	}
	return reflectValue(reflect.ValueOf(v), depth)
}

func dumpValue(v Typed) (value.Value, error) {
	if rv := reflect.ValueOf(v); rv.Kind() == reflect.Pointer && rv.IsNil() {
		return value.Null{}, nil
	}
	return Dump(v)
}

func reflectValue(v reflect.Value, depth int) (value.Value, error) {
	switch v.Kind() {
	case reflect.String:
		return value.Str(v.String()), nil
	case reflect.Bool:
		return value.Bool(v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return value.NewInt(v.Int()), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return uintValue(v.Uint()), nil
	case reflect.Float32, reflect.Float64:
		return value.Float(v.Float()), nil
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return value.Null{}, nil
		}
		return valueOf(v.Elem().Interface(), depth+1)
	case reflect.Slice, reflect.Array:
		return listValue(v, depth)
	case reflect.Map:
		return mapValue(v, depth)
	case reflect.Struct:
		return structValue(v, depth)
	}
	return nil, unsupportedType(v.Type())
}

func uintValue(u uint64) value.Value {
	n, err := value.ParseInt(fmt.Sprint(u))
	if err != nil { // decimal digits always parse
		panic(err)
	}
	return n
}

func listValue(v reflect.Value, depth int) (value.Value, error) {
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		return nil, errRawBytes
	}
	out := make(value.List, v.Len())
	for i := range out {
		item, err := valueOf(v.Index(i).Interface(), depth+1)
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		out[i] = item
	}
	return out, nil
}

func mapValue(v reflect.Value, depth int) (value.Value, error) {
	if v.Type().Key().Kind() != reflect.String {
		return nil, unsupportedType(v.Type())
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	out := value.NewObject(len(keys))
	for _, k := range keys {
		item, err := valueOf(v.MapIndex(k).Interface(), depth+1)
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", k.String(), err)
		}
		out.Set(k.String(), item)
	}
	return out, nil
}

// structValue writes the exported fields of a plain struct in order.
func structValue(v reflect.Value, depth int) (value.Value, error) {
	out := value.NewObject(v.NumField())
	for i := range v.NumField() {
		sf := v.Type().Field(i)
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if !sf.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = sf.Name
		}
		item, err := valueOf(v.Field(i).Interface(), depth+1)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", sf.Name, err)
		}
		out.Set(name, item)
	}
	return out, nil
}

// Both texts are the reference's, word for word: other implementations show
// them to models (CUBE, section 2.4).
var errRawBytes = exception.Errorf(exception.TypeError, "Cannot infer content type from raw bytes. Explicitly construct AudioContent or VideoContent instead.")

// UnsupportedValue is the TypeError for a value of a kind that no JSON can hold.
func UnsupportedValue(kind string) error {
	return exception.Errorf(exception.TypeError, "Unsupported data type for Content.from_data(): %s. Supported types: str, int, float, dict, list, BaseModel, PILImage.Image.", kind)
}

func unsupportedType(t reflect.Type) error {
	if t.Name() != "" {
		return UnsupportedValue(t.Name())
	}
	return UnsupportedValue(t.String())
}

// goValue is a value as Go code without this package has it: nil, bool, int (an
// [value.Int] when it does not fit), float64, string, []any or map[string]any.
func goValue(v value.Value) any {
	switch v := v.(type) {
	case value.Bool:
		return bool(v)
	case value.Int:
		if n, fits := v.Int64(); fits && int64(int(n)) == n {
			return int(n)
		}
		return v
	case value.Float:
		return float64(v)
	case value.Str:
		return string(v)
	case value.List:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = goValue(item)
		}
		return out
	case *value.Object:
		out := make(map[string]any, v.Len())
		for k, item := range v.All() {
			out[k] = goValue(item)
		}
		return out
	}
	return nil
}

// CheckNesting refuses a value that is nested too deep, one that contains itself
// above all: walking it would exhaust the stack, which no recover catches. what
// names the value in the error.
func CheckNesting(what string, v value.Value) error {
	if nestedDeeper(v, maxNesting) {
		return exception.Errorf(exception.ValueError, "%s is nested deeper than %d levels, or contains itself", what, maxNesting)
	}
	return nil
}

// maxNesting leaves room around what a parser has read at its own limit.
const maxNesting = value.MaxDepth + 100

func nestedDeeper(v value.Value, levels int) bool {
	switch v := v.(type) {
	case value.List:
		if levels == 0 {
			return true
		}
		for _, item := range v {
			if nestedDeeper(item, levels-1) {
				return true
			}
		}
	case *value.Object:
		if levels == 0 {
			return true
		}
		for _, item := range v.All() {
			if nestedDeeper(item, levels-1) {
				return true
			}
		}
	}
	return false
}
