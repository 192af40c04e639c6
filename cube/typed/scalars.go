package typed

import (
	"math"
	"reflect"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/value"
)

// Lax reading of scalars (CUBE, section 1.5).

func stringCodec(tag fieldTag) codec {
	dec := func(d *decoder, v value.Value, dst reflect.Value) {
		if s, ok := readString(d, v, tag); ok {
			dst.SetString(s)
		}
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
	return codec{dec, enc}
}

func readString(d *decoder, v value.Value, tag fieldTag) (string, bool) {
	if tag.has("text") {
		v = textOf(v)
	}
	s, ok := v.(value.Str)
	switch {
	case len(tag.enum) > 0 && (!ok || !contains(tag.enum, string(s))):
		d.fail("literal_error", "Input should be "+choices(tag.enum))
		return "", false
	case !ok:
		d.fail("string_type", "Input should be a valid string")
		return "", false
	case tag.has("nonblank") && strings.TrimSpace(string(s)) == "":
		d.failWith("value_error", exception.Errorf(exception.ValueError, "must be a non-empty string"))
		return "", false
	}
	return string(s), true
}

// textOf turns scalars into Python's text of them.
func textOf(v value.Value) value.Value {
	switch v.(type) {
	case value.Int, value.Float, value.Bool:
		return value.Str(value.Text(v))
	}
	return v
}

func contains(list []string, s string) bool {
	for _, item := range list {
		if item == s {
			return true
		}
	}
	return false
}

// choices renders "'train', 'val' or 'test'".
func choices(names []string) string {
	var b strings.Builder
	for i, n := range names {
		switch {
		case i == 0:
		case i == len(names)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		b.WriteString("'" + n + "'")
	}
	return b.String()
}

func boolCodec(tag fieldTag) codec {
	invert := tag.has("invert")
	return codec{
		dec: func(d *decoder, v value.Value, dst reflect.Value) {
			if b, ok := readBool(d, v); ok {
				dst.SetBool(b != invert)
			}
		},
		enc: func(_ *encoder, v reflect.Value) value.Value { return value.Bool(v.Bool() != invert) },
	}
}

const (
	msgBool        = "Input should be a valid boolean"
	msgBoolParsing = "Input should be a valid boolean, unable to interpret input"
	msgInt         = "Input should be a valid integer"
	msgIntFraction = "Input should be a valid integer, got a number with a fractional part"
	msgIntParsing  = "Input should be a valid integer, unable to parse string as an integer"
	msgFloat       = "Input should be a valid number"
	msgFloatParse  = "Input should be a valid number, unable to parse string as a number"
)

func readBool(d *decoder, v value.Value) (b, ok bool) {
	switch v := v.(type) {
	case value.Bool:
		return bool(v), true
	case value.Str:
		switch strings.ToLower(string(v)) {
		case "true", "t", "yes", "y", "on", "1":
			return true, true
		case "false", "f", "no", "n", "off", "0":
			return false, true
		}
		d.fail("bool_parsing", msgBoolParsing)
		return false, false
	case value.Int:
		n, fits := v.Int64()
		if fits && (n == 0 || n == 1) {
			return n == 1, true
		}
		d.fail("bool_parsing", msgBoolParsing)
		return false, false
	case value.Float:
		if v == 0 || v == 1 {
			return v == 1, true
		}
		if float64(v) == math.Trunc(float64(v)) {
			d.fail("bool_parsing", msgBoolParsing)
			return false, false
		}
	}
	d.fail("bool_type", msgBool)
	return false, false
}

func intCodec() codec {
	return codec{
		dec: func(d *decoder, v value.Value, dst reflect.Value) {
			n, ok := readInt(d, v)
			switch {
			case !ok:
			case dst.OverflowInt(n):
				d.fail("int_type", msgInt)
			default:
				dst.SetInt(n)
			}
		},
		enc: func(_ *encoder, v reflect.Value) value.Value { return value.NewInt(v.Int()) },
	}
}

func uintCodec() codec {
	return codec{
		dec: func(d *decoder, v value.Value, dst reflect.Value) {
			n, ok := readInt(d, v)
			switch {
			case !ok:
			case n < 0:
				d.fail("greater_than_equal", "Input should be greater than or equal to 0")
			case dst.OverflowUint(uint64(n)):
				d.fail("int_type", msgInt)
			default:
				dst.SetUint(uint64(n))
			}
		},
		enc: func(_ *encoder, v reflect.Value) value.Value { return uintValue(v.Uint()) },
	}
}

func readInt(d *decoder, v value.Value) (int64, bool) {
	switch v := v.(type) {
	case value.Int:
		return fitInt(d, v)
	case value.Bool:
		if v {
			return 1, true
		}
		return 0, true
	case value.Float:
		f := float64(v)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			d.fail("finite_number", "Input should be a finite number")
			return 0, false
		}
		if f != math.Trunc(f) {
			d.fail("int_from_float", msgIntFraction)
			return 0, false
		}
		if f < -(1<<63) || f >= 1<<63 {
			d.fail("int_type", msgInt)
			return 0, false
		}
		return int64(f), true
	case value.Str:
		if n, ok := value.LaxInt(string(v)); ok {
			return fitInt(d, n)
		}
		d.fail("int_parsing", msgIntParsing)
		return 0, false
	}
	d.fail("int_type", msgInt)
	return 0, false
}

func fitInt(d *decoder, n value.Int) (int64, bool) {
	i, fits := n.Int64()
	if !fits {
		d.fail("int_parsing_size", "Input should be a valid integer of at most 64 bits")
	}
	return i, fits
}

func floatCodec() codec {
	return codec{
		dec: func(d *decoder, v value.Value, dst reflect.Value) {
			if f, ok := readFloat(d, v); ok {
				dst.SetFloat(f)
			}
		},
		enc: func(_ *encoder, v reflect.Value) value.Value { return value.Float(v.Float()) },
	}
}

func readFloat(d *decoder, v value.Value) (float64, bool) {
	switch v := v.(type) {
	case value.Float:
		return float64(v), true
	case value.Int:
		f, err := v.Float64()
		if err != nil {
			return math.Inf(v.Sign()), true
		}
		return f, true
	case value.Bool:
		if v {
			return 1, true
		}
		return 0, true
	case value.Str:
		if f, ok := value.LaxFloat(string(v)); ok {
			return float64(f), true
		}
		d.fail("float_parsing", msgFloatParse)
		return 0, false
	}
	d.fail("float_type", msgFloat)
	return 0, false
}
