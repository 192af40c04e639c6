package typed

import (
	"fmt"
	"reflect"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/value"
)

// TypeKey is the discriminator of every typed object, always its last key.
const TypeKey = "_type"

// Typed is a value that crosses process boundaries as a JSON object with a
// _type. Implement it on the pointer of a struct:
//
//	type Metadata struct {
//		cube.TaskMetadata            // the base type: its fields come first
//		Difficulty string `json:"difficulty" default:"easy"`
//		Tags       []string `json:"tags" default:"[]"`
//	}
//
//	func (*Metadata) TypeName() string { return "my_cube.task.Metadata" }
//
// The name is a dotted path; use the one that the type has, or would have, in
// Python, so that both can read each other's data.
//
// Exported fields with a json tag are the object's fields, embedded structs
// first, in declaration order. A field of pointer or interface type may be null
// and may be missing. Any other field is required unless it has a default tag:
// text for strings, JSON for all else. An enum tag lists what a string may be.
// The field types are strings, booleans, ints, floats, slices and arrays of
// field types, [Map], *[value.Object] and [value.Value] for untyped data, pointers
// to typed structs and the interfaces of package cube (ToolConfig, Content, …).
//
// A Go literal has Go's zero values, not the defaults; [Default] has those.
//
// A type may check itself with a method Validate() error, which is called when
// its fields have been read.
type Typed interface {
	TypeName() string
}

type validator interface{ Validate() error }

// Default returns a T whose fields have the defaults of their tags.
func Default[T any]() T {
	var out T
	if p, err := planOf(reflect.TypeFor[T]()); err == nil {
		p.init(reflect.ValueOf(&out).Elem())
	}
	return out
}

// Dump returns a typed object as an untyped one: every field, defaults and
// nulls included, and _type last, at every depth (CUBE, section 1.1).
func Dump(v Typed) (*value.Object, error) {
	var e encoder
	out := e.typed(reflect.ValueOf(v))
	if err := e.err(v.TypeName()); err != nil {
		return nil, err
	}
	obj, ok := out.(*value.Object)
	if !ok {
		return nil, exception.Errorf(exception.TypeError, "writing %T: not a pointer to a struct", v)
	}
	return obj, nil
}

// Marshal writes a typed object as compact JSON (CUBE, section 1.3).
func Marshal(v Typed) ([]byte, error) { return MarshalIndent(v, 0) }

// MarshalIndent writes a typed object with so many spaces per level; 0 is
// compact.
func MarshalIndent(v Typed, indent int) ([]byte, error) {
	out, err := Dump(v)
	if err != nil {
		return nil, err
	}
	return AppendModel(nil, out, indent)
}

// AppendModel appends a value as JSON (CUBE, section 1.3), with so many spaces
// per level. Text that UTF-8 cannot hold is an error, as in
// the reference.
func AppendModel(dst []byte, v value.Value, indent int) ([]byte, error) {
	if err := CheckNesting("what is written as JSON", v); err != nil {
		return nil, err
	}
	if path, bad := surrogateIn(v); bad {
		return nil, exception.Errorf(exception.ValueError, "writing JSON: %s holds a lone surrogate, which UTF-8 cannot", path)
	}
	if dst == nil {
		dst = make([]byte, 0, usualSize)
	}
	return value.AppendPydantic(dst, v, indent), nil
}

// usualSize is about the length of a task config's JSON, in bytes.
const usualSize = 1024

func surrogateIn(v value.Value) (string, bool) {
	switch v := v.(type) {
	case value.Str:
		return "text", value.HasSurrogate(string(v))
	case value.List:
		for i, item := range v {
			if path, bad := surrogateIn(item); bad {
				return fmt.Sprintf("item %d: %s", i, path), true
			}
		}
	case *value.Object:
		for k, item := range v.All() {
			if value.HasSurrogate(k) {
				return "a key", true
			}
			if path, bad := surrogateIn(item); bad {
				return k + ": " + path, true
			}
		}
	}
	return "", false
}

// encoder carries what writing one value needs.
type encoder struct {
	errs []FieldError
	path []string
}

func (e *encoder) fail(msg string) {
	e.errs = append(e.errs, FieldError{Loc: append(Loc{}, e.path...), Type: "value_error", Msg: msg})
}

func (e *encoder) err(name string) error {
	if len(e.errs) == 0 {
		return nil
	}
	return &ValidationError{Type: name, Errors: e.errs}
}

// any writes what a custom field returned.
func (e *encoder) any(x any) value.Value {
	switch x := x.(type) {
	case nil:
		return value.Null{}
	case value.Value:
		return x
	case Typed:
		return e.typed(reflect.ValueOf(x))
	case Map[any]:
		out := value.NewObject(x.Len())
		for key, item := range x.All() {
			e.path = append(e.path, key)
			out.Append(key, e.any(item))
			e.path = e.path[:len(e.path)-1]
		}
		return out
	}
	e.fail(fmt.Sprintf("holds a live %T, which cannot be written", x))
	return value.Null{}
}

// maxDepth bounds how deep typed objects may nest, so that a value that
// contains itself is an error and not a crash.
const maxDepth = 1000

// typed writes a pointer to a typed struct as the subtype it really is.
func (e *encoder) typed(ptr reflect.Value) value.Value {
	if ptr.Kind() != reflect.Pointer || ptr.IsNil() || ptr.Elem().Kind() != reflect.Struct {
		return value.Null{}
	}
	ptr = outermost(ptr)
	name := ptr.Interface().(Typed).TypeName()
	p, err := planOf(ptr.Type().Elem())
	if err != nil {
		e.fail(err.Error())
		return value.Null{}
	}
	if len(e.path) > maxDepth {
		e.fail("nested too deep")
		return value.Null{}
	}
	out := e.object(p, ptr.Elem(), 1)
	if c, ok := ptr.Interface().(completer); ok {
		c.CompleteDump(out)
	}
	out.Append(TypeKey, value.Str(name))
	return out
}

// completer is the optional ability of a typed object to set fields of what is
// written of it that are computed then.
type completer interface{ CompleteDump(out *value.Object) }

func (e *encoder) object(p *plan, v reflect.Value, extra int) *value.Object {
	out := value.NewObject(len(p.fields) + extra)
	for i := range p.fields {
		f := &p.fields[i]
		e.path = append(e.path, f.name)
		out.Append(f.name, f.codec.enc(e, v.FieldByIndex(f.index)))
		e.path = e.path[:len(e.path)-1]
	}
	return out
}
