package typed

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/value"
)

// Custom is a field type with a form of its own, implemented on its pointer.
type Custom interface {
	// UnmarshalValue reads what stands in the field. The locations of a
	// [*ValidationError] are taken as below the field.
	UnmarshalValue(v value.Value) error
	// MarshalValue returns what is written: a value, a [Typed], or a Map[any]
	// of those.
	MarshalValue() (any, error)
}

// mapping is a [Map] of any type.
type mapping interface {
	decode(d *decoder, v value.Value)
	encode(e *encoder) value.Value
}

var (
	customType  = reflect.TypeFor[Custom]()
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
			dec: func(_ *decoder, v value.Value, dst reflect.Value) { dst.Set(reflect.ValueOf(v)) },
			enc: encodeUntyped,
		}, nil
	case reflect.PointerTo(t).Implements(customType):
		return customCodec(), nil
	case reflect.PointerTo(t).Implements(mappingType):
		return mappingCodec(), nil
	}
	switch t.Kind() {
	case reflect.String:
		c := stringCodec(tag)
		if tag.nullable {
			return nullString(c), nil
		}
		return c, nil
	case reflect.Bool:
		return boolCodec(tag), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return intCodec(), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return uintCodec(), nil
	case reflect.Float32, reflect.Float64:
		return floatCodec(), nil
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

func encodeUntyped(_ *encoder, v reflect.Value) value.Value {
	if v.IsNil() {
		return value.Null{}
	}
	return v.Interface().(value.Value)
}

// anyCodec is a field of type any: it holds what [goValue] makes of a value.
func anyCodec() codec {
	return codec{
		dec: func(_ *decoder, v value.Value, dst reflect.Value) {
			dst.SetZero()
			if plain := goValue(v); plain != nil {
				dst.Set(reflect.ValueOf(plain))
			}
		},
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
		dec: func(d *decoder, v value.Value, dst reflect.Value) {
			obj, ok := v.(*value.Object)
			if !ok {
				d.fail("model_type", "Input should be an object")
				return
			}
			d.fill(p, obj, dst)
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

func objectCodec(tag fieldTag) codec {
	return codec{
		dec: func(d *decoder, v value.Value, dst reflect.Value) {
			if tag.nullable && value.IsNull(v) {
				dst.SetZero()
				return
			}
			o, ok := v.(*value.Object)
			if !ok {
				d.fail("dict_type", "Input should be an object")
				return
			}
			dst.Set(reflect.ValueOf(o))
		},
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
}

func customCodec() codec {
	return codec{
		dec: func(d *decoder, v value.Value, dst reflect.Value) {
			if err := dst.Addr().Interface().(Custom).UnmarshalValue(v); err != nil {
				d.failCustom(err)
			}
		},
		enc: func(e *encoder, v reflect.Value) value.Value {
			out, err := addressable(v).Addr().Interface().(Custom).MarshalValue()
			if err != nil {
				e.fail(err.Error())
				return value.Null{}
			}
			return e.any(out)
		},
	}
}

func mappingCodec() codec {
	return codec{
		dec: func(d *decoder, v value.Value, dst reflect.Value) { dst.Addr().Interface().(mapping).decode(d, v) },
		enc: func(e *encoder, v reflect.Value) value.Value {
			return addressable(v).Addr().Interface().(mapping).encode(e)
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
		dec: func(d *decoder, v value.Value, dst reflect.Value) {
			if value.IsNull(v) {
				dst.SetZero()
				return
			}
			c.dec(d, v, dst)
		},
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
	dec := func(d *decoder, v value.Value, dst reflect.Value) {
		if tag.nullable && value.IsNull(v) {
			dst.SetZero()
			return
		}
		list, ok := v.(value.List)
		if !ok {
			d.fail("list_type", "Input should be a valid array")
			return
		}
		if t.Kind() == reflect.Array && len(list) != t.Len() {
			d.fail("value_error", fmt.Sprintf("Input should have %d items, not %d", t.Len(), len(list)))
			return
		}
		out := dst
		if t.Kind() == reflect.Slice {
			out = reflect.MakeSlice(t, len(list), len(list))
		}
		for i, item := range list {
			d.index(i)
			elem.dec(d, item, out.Index(i))
			d.leave()
		}
		dst.Set(out)
	}
	enc := func(e *encoder, v reflect.Value) value.Value {
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
	}
	return codec{dec, enc}, nil
}

// slotCodec is a slot of an interface type: what stands in it says by its _type
// which of the types it is.
func slotCodec(t reflect.Type, tag fieldTag) codec {
	return codec{
		dec: func(d *decoder, v value.Value, dst reflect.Value) {
			if !tag.has("required") && value.IsNull(v) {
				dst.SetZero()
				return
			}
			declared := d.reg.family(t)
			if declared == nil {
				d.fail("value_error", fmt.Sprintf("no family of types is registered for %s", t))
				return
			}
			if ptr := d.load(declared, v); ptr.IsValid() {
				dst.Set(ptr)
			}
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
		dec: func(d *decoder, v value.Value, dst reflect.Value) {
			if value.IsNull(v) {
				dst.SetZero()
				return
			}
			p := reflect.New(t.Elem())
			elem.dec(d, v, p.Elem())
			dst.Set(p)
		},
		enc: func(e *encoder, v reflect.Value) value.Value {
			if v.IsNil() {
				return value.Null{}
			}
			return elem.enc(e, v.Elem())
		},
	}, nil
}

func typedPointerCodec(t reflect.Type, tag fieldTag) codec {
	return codec{
		dec: func(d *decoder, v value.Value, dst reflect.Value) {
			if !tag.has("required") && value.IsNull(v) {
				dst.SetZero()
				return
			}
			declared := d.reg.typeOf(t.Elem())
			if declared == nil {
				d.fail("value_error", fmt.Sprintf("%s is not registered", t.Elem()))
				return
			}
			ptr := d.load(declared, v)
			if !ptr.IsValid() {
				return
			}
			base, ok := embeddedIn(ptr, t.Elem())
			if !ok {
				d.fail("value_error", fmt.Sprintf("%s does not embed %s", ptr.Type(), t.Elem()))
				return
			}
			if l, ok := base.Interface().(linked); ok && ptr.Type() != t {
				l.subtypeLink().outer = ptr.Interface()
			}
			dst.Set(base)
		},
		enc: func(e *encoder, v reflect.Value) value.Value { return e.typed(v) },
	}
}
