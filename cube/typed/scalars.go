package typed

import (
	"reflect"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// scalar reads with a decoder of package schema, which has the coercions and the
// messages (CUBE, section 1.5).
func scalar[T any](d schema.Decoder[T], put func(dst reflect.Value, x T)) decode {
	return func(_ *Registry, c *schema.Cursor, v value.Value, dst reflect.Value) bool {
		x, ok := d(c, v)
		if ok {
			put(dst, x)
		}
		return ok
	}
}

func stringCodec(tag fieldTag) codec {
	d := schema.Str
	if len(tag.enum) > 0 {
		d = schema.Literal(tag.enum...)
	}
	if tag.has("text") {
		d = schema.Before(textOf, d)
	}
	if tag.has("nonblank") {
		d = schema.After(d, nonblank)
	}
	enc := func(_ *encoder, v reflect.Value) value.Value { return value.Str(v.String()) }
	if len(tag.enum) > 0 && tag.hasDef {
		// An empty choice is none of the choices: a literal that leaves the
		// field alone means the default.
		enc = func(_ *encoder, v reflect.Value) value.Value {
			if v.Len() == 0 {
				return value.Str(tag.def)
			}
			return value.Str(v.String())
		}
	}
	return codec{scalar(d, reflect.Value.SetString), enc}
}

// textOf turns scalars into Python's text of them.
func textOf(_ *schema.Cursor, v value.Value) (value.Value, error) {
	switch v.(type) {
	case value.Int, value.Float, value.Bool:
		return value.Str(value.Text(v)), nil
	}
	return v, nil
}

func nonblank(s string) (string, error) {
	if strings.TrimSpace(s) == "" {
		return s, exception.Errorf(exception.ValueError, "must be a non-empty string")
	}
	return s, nil
}

func boolCodec(tag fieldTag) codec {
	invert := tag.has("invert")
	return codec{
		dec: scalar(schema.Bool, func(dst reflect.Value, b bool) { dst.SetBool(b != invert) }),
		enc: func(_ *encoder, v reflect.Value) value.Value { return value.Bool(v.Bool() != invert) },
	}
}

func intCodec(t reflect.Type) codec {
	return codec{
		dec: scalar(schema.SizedInt(t.Bits()), reflect.Value.SetInt),
		enc: func(_ *encoder, v reflect.Value) value.Value { return value.NewInt(v.Int()) },
	}
}

func uintCodec(t reflect.Type) codec {
	return codec{
		dec: scalar(schema.SizedUint(t.Bits()), reflect.Value.SetUint),
		enc: func(_ *encoder, v reflect.Value) value.Value { return uintValue(v.Uint()) },
	}
}

func floatCodec() codec {
	return codec{
		dec: scalar(schema.Float, reflect.Value.SetFloat),
		enc: func(_ *encoder, v reflect.Value) value.Value { return value.Float(v.Float()) },
	}
}
