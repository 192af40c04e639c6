package schema

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/proctor-run/proctor/value"
)

const (
	msgIntParsing   = "Input should be a valid integer, unable to parse string as an integer"
	msgIntSize      = "Unable to parse input string as an integer, exceeded maximum size"
	msgFloatParsing = "Input should be a valid number, unable to parse string as a number"
)

// Int accepts integers of any size, booleans, floats without fraction that fit
// 64 bits, and decimal strings.
func Int(c *Cursor, v value.Value) (value.Int, bool) {
	n, kind, msg := intOf(c, v)
	if kind != "" {
		c.Fail(kind, msg, v)
		return value.Int{}, false
	}
	return n, true
}

func intOf(c *Cursor, v value.Value) (n value.Int, kind, msg string) {
	if n, ok := v.(value.Int); ok {
		return n, "", ""
	}
	c.bend(lax)
	switch v := v.(type) {
	case value.Bool:
		if v {
			return value.NewInt(1), "", ""
		}
		return n, "", ""
	case value.Float:
		return intOfFloat(float64(v))
	case value.Str:
		if n, ok := value.LaxInt(string(v)); ok {
			return n, "", ""
		}
		if len(v) > value.MaxIntDigits {
			return n, "int_parsing_size", msgIntSize
		}
		return n, "int_parsing", msgIntParsing
	}
	return n, "int_type", "Input should be a valid integer"
}

func intOfFloat(f float64) (n value.Int, kind, msg string) {
	switch i, fits := integral(f); {
	case math.IsInf(f, 0) || math.IsNaN(f):
		return n, "finite_number", "Input should be a finite number"
	case f != math.Trunc(f):
		return n, "int_from_float", "Input should be a valid integer, got a number with a fractional part"
	case !fits:
		return n, "int_parsing_size", msgIntSize
	default:
		return value.NewInt(i), "", ""
	}
}

// SmallInt is [Int] for quantities that a machine integer can hold; larger
// ones are errors.
func SmallInt(c *Cursor, v value.Value) (int, bool) {
	n, ok := Int(c, v)
	if !ok {
		return 0, false
	}
	small, fits := n.Int64()
	if !fits || int64(int(small)) != small {
		c.Fail("int_parsing_size", msgIntSize, v)
		return 0, false
	}
	return int(small), true
}

// AtLeast adds a lower bound to an integer.
func AtLeast(bound int, d Decoder[int]) Decoder[int] {
	return func(c *Cursor, v value.Value) (int, bool) {
		n, ok := d(c, v)
		if ok && n < bound {
			c.Fail("greater_than_equal", fmt.Sprintf("Input should be greater than or equal to %d", bound), v)
			return 0, false
		}
		return n, ok
	}
}

// Float accepts numbers, booleans and decimal strings, infinities and nan
// included.
func Float(c *Cursor, v value.Value) (float64, bool) {
	switch v := v.(type) {
	case value.Float:
		return float64(v), true
	case value.Int:
		c.bend(strict)
		f, err := v.Float64()
		if !errors.Is(err, value.OverflowError) {
			return f, true
		}
	case value.Bool:
		c.bend(lax)
		if v {
			return 1, true
		}
		return 0, true
	case value.Str:
		c.bend(lax)
		if f, ok := floatOfText(string(v)); ok {
			return f, true
		}
		c.Fail("float_parsing", msgFloatParsing, v)
		return 0, false
	}
	c.Fail("float_type", "Input should be a valid number", v)
	return 0, false
}

// floatOfText reads a decimal number with white space around it, or without
// but with single underscores inside.
func floatOfText(s string) (float64, bool) {
	if f, ok := value.FloatLiteral(strings.TrimSpace(s)); ok {
		return float64(f), true
	}
	if !strings.Contains(s, "_") || s[0] == '_' || s[len(s)-1] == '_' || strings.Contains(s, "__") {
		return 0, false
	}
	f, ok := value.FloatLiteral(strings.ReplaceAll(s, "_", ""))
	return float64(f), ok
}
