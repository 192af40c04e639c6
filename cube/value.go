package cube

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/value"
)

// Values of untyped slots: what JSON can hold, with ints apart from floats and
// objects in order. A nil Value is null.
type (
	// Value is one of Null, Bool, Int, Float, Str, List and *Object.
	Value = value.Value
	// Null is JSON's null.
	Null = value.Null
	// Bool is true or false.
	Bool = value.Bool
	// Int is an integer of any size.
	Int = value.Int
	// Float is a double.
	Float = value.Float
	// Str is text.
	Str = value.Str
	// List is an array.
	List = value.List
	// Object is an ordered map.
	Object = value.Object
)

// Info is what Reset and Evaluate tell besides the observation and the reward:
// an ordered map of JSON values. Make one with [Pairs]; nil is empty.
type Info = *Object

// Pairs returns an ordered map from alternating keys and values:
//
//	cube.Pairs("answer", 7, "correct", true)
//
// Values are what [ValueOf] takes. It panics when a key is not a string, a
// value is missing or is nothing that JSON can hold: those are mistakes in the
// program, and a panic in a hook or an action is turned into an error.
func Pairs(keysAndValues ...any) *Object {
	if len(keysAndValues)%2 != 0 {
		panic("cube.Pairs: a value is missing")
	}
	out := value.NewObject(len(keysAndValues) / 2)
	for i := 0; i < len(keysAndValues); i += 2 {
		key, ok := keysAndValues[i].(string)
		if !ok {
			panic(fmt.Sprintf("cube.Pairs: key %v is not a string", keysAndValues[i]))
		}
		v, err := ValueOf(keysAndValues[i+1])
		if err != nil {
			panic(fmt.Sprintf("cube.Pairs: key %q: %v", key, err))
		}
		out.Set(key, v)
	}
	return out
}

// ValueOf converts a Go value: nil, booleans, numbers, strings, slices, arrays,
// maps with string keys (written in key order), structs (fields in order, named
// by their json tags), typed objects (their dump, with _type), pointers to all
// of those, and Values themselves. Bytes and everything else are a TypeError.
func ValueOf(v any) (Value, error) { return valueOf(v, 0) }

func valueOf(v any, depth int) (Value, error) {
	if depth > maxDepth {
		return nil, ValueErrorf("nested too deep")
	}
	switch v := v.(type) {
	case nil:
		return Null{}, nil
	case *Object:
		if v == nil {
			return value.NewObject(0), nil
		}
		return v, nil
	case Value:
		return v, nil
	case string:
		return Str(v), nil
	case bool:
		return Bool(v), nil
	case int:
		return value.NewInt(int64(v)), nil
	case float64:
		return Float(v), nil
	case json.RawMessage:
		return value.Decode(v)
	case Typed:
		return dumpValue(v)
	}
	return reflectValue(reflect.ValueOf(v), depth)
}

func dumpValue(v Typed) (Value, error) {
	if rv := reflect.ValueOf(v); rv.Kind() == reflect.Pointer && rv.IsNil() {
		return Null{}, nil
	}
	return Dump(v)
}

func reflectValue(v reflect.Value, depth int) (Value, error) {
	switch v.Kind() {
	case reflect.String:
		return Str(v.String()), nil
	case reflect.Bool:
		return Bool(v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return value.NewInt(v.Int()), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return uintValue(v.Uint()), nil
	case reflect.Float32, reflect.Float64:
		return Float(v.Float()), nil
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return Null{}, nil
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

func uintValue(u uint64) Value {
	n, err := value.ParseInt(fmt.Sprint(u))
	if err != nil { // decimal digits always parse
		panic(err)
	}
	return n
}

func listValue(v reflect.Value, depth int) (Value, error) {
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		return nil, errRawBytes
	}
	out := make(List, v.Len())
	for i := range out {
		item, err := valueOf(v.Index(i).Interface(), depth+1)
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		out[i] = item
	}
	return out, nil
}

func mapValue(v reflect.Value, depth int) (Value, error) {
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
func structValue(v reflect.Value, depth int) (Value, error) {
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
var errRawBytes = TypeErrorf("Cannot infer content type from raw bytes. Explicitly construct AudioContent or VideoContent instead.")

func unsupportedValue(kind string) error {
	return TypeErrorf("Unsupported data type for Content.from_data(): %s. Supported types: str, int, float, dict, list, BaseModel, PILImage.Image.", kind)
}

func unsupportedType(t reflect.Type) error {
	if t.Name() != "" {
		return unsupportedValue(t.Name())
	}
	return unsupportedValue(t.String())
}

// goValue is a value as Go code without this package has it: nil, bool, int (an
// [Int] when it does not fit), float64, string, []any or map[string]any.
func goValue(v Value) any {
	switch v := v.(type) {
	case Bool:
		return bool(v)
	case Int:
		if n, fits := v.Int64(); fits && int64(int(n)) == n {
			return int(n)
		}
		return v
	case Float:
		return float64(v)
	case Str:
		return string(v)
	case List:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = goValue(item)
		}
		return out
	case *Object:
		out := make(map[string]any, v.Len())
		for k, item := range v.All() {
			out[k] = goValue(item)
		}
		return out
	}
	return nil
}

// text is Python's str() of a value.
func text(v Value) string {
	if s, ok := v.(Str); ok {
		return string(s)
	}
	return value.Repr(v)
}

// PythonText is Python's str() of a value, for messages that other
// implementations write too: True, None, 7.0, {'a': 1}; text is itself.
func PythonText(v Value) string { return text(v) }

// falsy is Python's "not v".
func falsy(v Value) bool {
	switch v := v.(type) {
	case Bool:
		return !bool(v)
	case Int:
		return v.Sign() == 0
	case Float:
		return v == 0
	case Str:
		return v == ""
	case List:
		return len(v) == 0
	case *Object:
		return v.Len() == 0
	}
	return true
}

// clone copies a value so that changes of one are not seen in the other.
func clone(v Value) Value {
	switch v := v.(type) {
	case List:
		out := make(List, len(v))
		for i, item := range v {
			out[i] = clone(item)
		}
		return out
	case *Object:
		return cloneObject(v)
	}
	return v
}

func cloneObject(o *Object) *Object {
	if o == nil {
		return value.NewObject(1)
	}
	out := value.NewObject(o.Len() + 1)
	for k, v := range o.All() {
		out.Append(k, clone(v))
	}
	return out
}

// quote is Python's repr of a string.
func quote(s string) string { return value.Repr(Str(s)) }

func quoteList(names []string) string {
	list := make(List, len(names))
	for i, n := range names {
		list[i] = Str(n)
	}
	return value.Repr(list)
}
