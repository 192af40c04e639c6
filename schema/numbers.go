package schema

import (
	"errors"
	"fmt"
	"math"
	"strconv"

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
	n, ok := sized(c, v, strconv.IntSize)
	return int(n), ok
}

// SizedInt is [Int] for integers of so many bits, 64 at most.
func SizedInt(bits int) Decoder[int64] {
	return func(c *Cursor, v value.Value) (int64, bool) { return sized(c, v, bits) }
}

func sized(c *Cursor, v value.Value, bits int) (int64, bool) {
	n, ok := Int(c, v)
	if !ok {
		return 0, false
	}
	small, fits := n.Int64()
	if !fits || small<<(64-bits)>>(64-bits) != small {
		c.failSize(bits, v)
		return 0, false
	}
	return small, true
}

// SizedUint is [Int] for integers of so many bits, 64 at most, that are not
// negative.
func SizedUint(bits int) Decoder[uint64] {
	return func(c *Cursor, v value.Value) (uint64, bool) {
		n, ok := Int(c, v)
		switch {
		case !ok:
			return 0, false
		case n.Sign() < 0:
			c.failAtLeast(0, v)
			return 0, false
		case n.Big().BitLen() > bits:
			c.failSize(bits, v)
			return 0, false
		}
		return n.Big().Uint64(), true
	}
}

// failSize reports a limit that pydantic does not have.
func (c *Cursor) failSize(bits int, v value.Value) {
	c.Fail("int_parsing_size", fmt.Sprintf("Input should be a valid integer of at most %d bits", bits), v)
}

// AtLeast adds a lower bound to an integer.
func AtLeast(bound int, d Decoder[int]) Decoder[int] {
	return func(c *Cursor, v value.Value) (int, bool) {
		n, ok := d(c, v)
		if ok && n < bound {
			c.failAtLeast(bound, v)
			return 0, false
		}
		return n, ok
	}
}

func (c *Cursor) failAtLeast(bound int, v value.Value) {
	c.Fail("greater_than_equal", fmt.Sprintf("Input should be greater than or equal to %d", bound), v)
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
		if f, ok := value.LaxFloat(string(v)); ok {
			return float64(f), true
		}
		c.Fail("float_parsing", msgFloatParsing, v)
		return 0, false
	}
	c.Fail("float_type", "Input should be a valid number", v)
	return 0, false
}
