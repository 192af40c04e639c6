package typed

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// custom is a field type with a form of its own, implemented on its pointer.
type custom interface {
	// UnmarshalValue reads what stands in the field. The locations of a
	// [*ValidationError] are taken as below the field.
	UnmarshalValue(v value.Value) error
	// MarshalValue returns what is written: a value, a [Typed], or a Map[any]
	// of those.
	MarshalValue() (any, error)
}

var (
	customType  = reflect.TypeFor[custom]()
	mappingType = reflect.TypeFor[mapping]()
	typedType   = reflect.TypeFor[Typed]()
	objectType  = reflect.TypeFor[*value.Object]()
	valueType   = reflect.TypeFor[value.Value]()
)

// codecOf returns how fields of a type are read and written.
func codecOf(t reflect.Type, tag fieldTag) (codec, error) {
	switch {
	case t == objectType:
		return objectCodec(tag), nil
	case t == valueType:
		return codec{
			dec: scalar(schema.Any, func(dst reflect.Value, v value.Value) { dst.Set(reflect.ValueOf(v)) }),
			enc: encodeUntyped,
		}, nil
	case reflect.PointerTo(t).Implements(customType):
		return customCodec(), nil
	case reflect.PointerTo(t).Implements(mappingType):
		return reflect.New(t).Interface().(mapping).codec()
	}
	if c, ok := scalarCodec(t, tag); ok {
		return c, nil
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return listCodec(t, tag)
	case reflect.Struct:
		return structCodec(t)
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return anyCodec(), nil
		}
		return slotCodec(t, tag), nil
	case reflect.Pointer:
		return pointerCodec(t, tag)
	case reflect.Map:
		return codec{}, exception.Errorf(exception.TypeError, "%s loses the order of its keys: use cube.Map[%s]", t, t.Elem())
	}
	return codec{}, exception.Errorf(exception.TypeError, "%s cannot be a field of a typed object", t)
}

// scalarCodec is that of texts, booleans and numbers.
func scalarCodec(t reflect.Type, tag fieldTag) (codec, bool) {
	switch t.Kind() {
	case reflect.String:
		c := stringCodec(tag)
		if tag.nullable {
			return nullString(c), true
		}
		return c, true
	case reflect.Bool:
		return boolCodec(tag), true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return intCodec(t), true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return uintCodec(t), true
	case reflect.Float32, reflect.Float64:
		return floatCodec(), true
	}
	return codec{}, false
}

func encodeUntyped(_ *encoder, v reflect.Value) value.Value {
	if v.IsNil() {
		return value.Null{}
	}
	return v.Interface().(value.Value)
}

// anyCodec is a field of type any: it holds what [goValue] makes of a value.
func anyCodec() codec {
	return codec{
		dec: scalar(schema.Any, func(dst reflect.Value, v value.Value) {
			dst.SetZero()
			if plain := goValue(v); plain != nil {
				dst.Set(reflect.ValueOf(plain))
			}
		}),
		enc: func(e *encoder, v reflect.Value) value.Value {
			out, err := ValueOf(v.Interface())
			if err != nil {
				e.fail(err.Error())
				return value.Null{}
			}
			return out
		},
	}
}

// structCodec is a plain struct, an object without a _type.
func structCodec(t reflect.Type) (codec, error) {
	if reflect.PointerTo(t).Implements(typedType) {
		return codec{}, exception.Errorf(exception.TypeError, "%s is a typed object: use a pointer to it", t)
	}
	if containsItself(t, nil) {
		return codec{}, exception.Errorf(exception.TypeError, "%s contains itself", t)
	}
	if err := checkTagged(t); err != nil {
		return codec{}, err
	}
	p, err := planOf(t)
	if err != nil {
		return codec{}, err
	}
	if len(p.fields) == 0 && t.NumField() > 0 {
		return codec{}, exception.Errorf(exception.TypeError, "%s cannot be a field of a typed object: it has no fields of its own with a json tag", t)
	}
	return codec{
		dec: func(r *Registry, c *schema.Cursor, v value.Value, dst reflect.Value) bool {
			_, ok := p.model(r, t.Name(), false, dst)(c, v)
			return ok
		},
		enc: func(e *encoder, v reflect.Value) value.Value { return e.object(p, v, 0) },
	}, nil
}

// containsItself reports whether a plain struct can be reached from its own
// fields; above are the structs that lead to it.
func containsItself(t reflect.Type, above []reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return !t.Implements(typedType) && containsItself(t.Elem(), above)
	case reflect.Struct:
	default:
		return false
	}
	if slices.Contains(above, t) {
		return true
	}
	if m, ok := reflect.New(t).Interface().(mapping); ok {
		return containsItself(m.elem(), append(slices.Clone(above), t))
	}
	if IsObject(t) || t == objectType.Elem() {
		return false
	}
	above = append(slices.Clone(above), t)
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && containsItself(f.Type, above) {
			return true
		}
	}
	return false
}

// checkTagged refuses fields that would be neither written nor read. A field
// says with json:"-" that this is wanted.
func checkTagged(t reflect.Type) error {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		_, tagged := f.Tag.Lookup("json")
		switch {
		case f.Anonymous && !tagged && f.Type.Kind() == reflect.Struct:
			if err := checkTagged(f.Type); err != nil {
				return err
			}
		case !f.IsExported() && tagged && name != "-":
			return exception.Errorf(exception.TypeError, "field %s of %s has a json tag but is not exported", f.Name, t)
		case f.IsExported() && name == "":
			return exception.Errorf(exception.TypeError, "field %s of %s has no name in a json tag (json:\"-\" leaves it out)", f.Name, t)
		}
	}
	return nil
}

// optional reads null as the zero value.
func optional(d decode) decode {
	return func(r *Registry, c *schema.Cursor, v value.Value, dst reflect.Value) bool {
		if value.IsNull(v) {
			dst.SetZero()
			return true
		}
		return d(r, c, v, dst)
	}
}

func objectCodec(tag fieldTag) codec {
	c := codec{
		dec: scalar(schema.Object, func(dst reflect.Value, o *value.Object) { dst.Set(reflect.ValueOf(o)) }),
		enc: func(_ *encoder, v reflect.Value) value.Value {
			if !v.IsNil() {
				return v.Interface().(*value.Object)
			}
			if tag.nullable {
				return value.Null{}
			}
			return value.NewObject(0)
		},
	}
	if tag.nullable {
		c.dec = optional(c.dec)
	}
	return c
}

func customCodec() codec {
	return codec{
		dec: func(_ *Registry, c *schema.Cursor, v value.Value, dst reflect.Value) bool {
			err := dst.Addr().Interface().(custom).UnmarshalValue(v)
			if err != nil {
				report(c, err, v)
			}
			return err == nil
		},
		enc: func(e *encoder, v reflect.Value) value.Value {
			out, err := addressable(v).Addr().Interface().(custom).MarshalValue()
			if err != nil {
				e.fail(err.Error())
				return value.Null{}
			}
			return e.any(out)
		},
	}
}

// addressable returns v, or a copy of it that has an address.
func addressable(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p.Elem()
}

// nullString reads null as the empty string, and back.
func nullString(c codec) codec {
	return codec{
		dec: optional(c.dec),
		enc: func(e *encoder, v reflect.Value) value.Value {
			if v.Len() == 0 {
				return value.Null{}
			}
			return c.enc(e, v)
		},
	}
}

func listCodec(t reflect.Type, tag fieldTag) (codec, error) {
	if t.Elem().Kind() == reflect.Uint8 {
		return codec{}, exception.Errorf(exception.TypeError, "%s cannot be a field of a typed object: JSON has no bytes", t)
	}
	elem, err := codecOf(t.Elem(), fieldTag{enum: tag.enum, options: []string{"required"}})
	if err != nil {
		return codec{}, err
	}
	c := codec{
		dec: func(r *Registry, c *schema.Cursor, v value.Value, dst reflect.Value) bool {
			items, ok := schema.Items(c, v)
			if !ok {
				return false
			}
			out := dst
			switch {
			case t.Kind() == reflect.Slice:
				out = reflect.MakeSlice(t, len(items), len(items))
			case len(items) != t.Len():
				c.Fail("value_error", fmt.Sprintf("Input should have %d items, not %d", t.Len(), len(items)), v)
				return false
			}
			for i, item := range items {
				ok = elem.dec(r, c.Item(i), item, out.Index(i)) && ok
			}
			dst.Set(out)
			return ok
		},
		enc: func(e *encoder, v reflect.Value) value.Value {
			if tag.nullable && t.Kind() == reflect.Slice && v.IsNil() {
				return value.Null{}
			}
			out := make(value.List, v.Len())
			for i := range out {
				e.path = append(e.path, strconv.Itoa(i))
				out[i] = elem.enc(e, v.Index(i))
				e.path = e.path[:len(e.path)-1]
			}
			return out
		},
	}
	if tag.nullable {
		c.dec = optional(c.dec)
	}
	return c, nil
}

// slotCodec is a slot of an interface type: what stands in it says by its _type
// which of the types it is.
func slotCodec(t reflect.Type, tag fieldTag) codec {
	c := codec{
		dec: func(r *Registry, c *schema.Cursor, v value.Value, dst reflect.Value) bool {
			declared := r.family(t)
			if declared == nil {
				c.Fail("value_error", fmt.Sprintf("no family of types is registered for %s", t), v)
				return false
			}
			ptr, ok := r.read(c, declared, v)
			if ok {
				dst.Set(ptr)
			}
			return ok
		},
		enc: func(e *encoder, v reflect.Value) value.Value {
			if v.IsNil() {
				return value.Null{}
			}
			inner := v.Elem()
			if _, ok := v.Interface().(Typed); !ok {
				e.fail(fmt.Sprintf("%s has no TypeName", inner.Type()))
				return value.Null{}
			}
			return e.typed(inner)
		},
	}
	if !tag.has("required") {
		c.dec = optional(c.dec)
	}
	return c
}

// pointerCodec is a nullable scalar, or a slot of a concrete typed struct.
func pointerCodec(t reflect.Type, tag fieldTag) (codec, error) {
	if t.Implements(typedType) && t.Elem().Kind() == reflect.Struct {
		return typedPointerCodec(t, tag), nil
	}
	elem, err := codecOf(t.Elem(), tag)
	if err != nil {
		return codec{}, err
	}
	return codec{
		dec: optional(func(r *Registry, c *schema.Cursor, v value.Value, dst reflect.Value) bool {
			p := reflect.New(t.Elem())
			ok := elem.dec(r, c, v, p.Elem())
			if ok {
				dst.Set(p)
			}
			return ok
		}),
		enc: func(e *encoder, v reflect.Value) value.Value {
			if v.IsNil() {
				return value.Null{}
			}
			return elem.enc(e, v.Elem())
		},
	}, nil
}

func typedPointerCodec(t reflect.Type, tag fieldTag) codec {
	c := codec{
		dec: func(r *Registry, c *schema.Cursor, v value.Value, dst reflect.Value) bool {
			declared := r.typeOf(t.Elem())
			if declared == nil {
				c.Fail("value_error", fmt.Sprintf("%s is not registered", t.Elem()), v)
				return false
			}
			ptr, ok := r.read(c, declared, v)
			if !ok {
				return false
			}
			base, ok := embeddedIn(ptr, t.Elem())
			if !ok {
				c.Fail("value_error", fmt.Sprintf("%s does not embed %s", ptr.Type(), t.Elem()), v)
				return false
			}
			if l, ok := base.Interface().(linked); ok && ptr.Type() != t {
				l.subtypeLink().outer = ptr.Interface()
			}
			dst.Set(base)
			return true
		},
		enc: func(e *encoder, v reflect.Value) value.Value { return e.typed(v) },
	}
	if !tag.has("required") {
		c.dec = optional(c.dec)
	}
	return c
}
