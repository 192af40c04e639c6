package value

import (
	"math"
	"strconv"
)

// FloatRepr returns Python's text of a float: the shortest digits that read
// back, fixed from 1e-4 up to 1e16, else with an exponent of at least two digits
// (1e-05, 1e+16), and nan, inf or -inf. (Reward semantics, section 6.1.)
func FloatRepr(f float64) string { return string(AppendFloatRepr(nil, f)) }

// AppendFloatRepr appends [FloatRepr] to dst.
func AppendFloatRepr(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "nan"...)
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	}
	return appendFloat(dst, f, -4, 2)
}

// AppendPydanticFloat appends a float as pydantic 2.13 writes it in a value
// position: the shortest digits that read back, fixed from 1e-5 up to 1e16, else
// with an unpadded exponent (1e-6, 1e+16). What is not finite becomes null.
// (Reward semantics, section 6.)
func AppendPydanticFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	return appendFloat(dst, f, -5, 1)
}

// fixedBelow is the decimal exponent from which both layouts use an exponent.
const fixedBelow = 16

// appendFloat lays out a finite float: fixed while its decimal exponent is at
// least fixedFrom and less than fixedBelow, and else with at least expDigits
// digits of exponent.
func appendFloat(dst []byte, f float64, fixedFrom, expDigits int) []byte {
	var scratch [32]byte
	sci := strconv.AppendFloat(scratch[:0], f, 'e', -1, 64)
	if sci[0] == '-' {
		dst = append(dst, '-')
		sci = sci[1:]
	}
	// sci is d[.ddd]e±xx; the first digit moves over the point.
	mark := len(sci) - 1
	for sci[mark] != 'e' {
		mark--
	}
	exp, _ := strconv.Atoi(string(sci[mark+1:]))
	digits := sci[:1]
	if mark > 2 {
		sci[1] = sci[0]
		digits = sci[1:mark]
	}
	if exp < fixedFrom || exp >= fixedBelow {
		return appendExponent(dst, digits, exp, expDigits)
	}
	return appendFixed(dst, digits, exp)
}

func appendExponent(dst, digits []byte, exp, expDigits int) []byte {
	dst = append(dst, digits[0])
	if len(digits) > 1 {
		dst = append(dst, '.')
		dst = append(dst, digits[1:]...)
	}
	sign := byte('+')
	if exp < 0 {
		sign, exp = '-', -exp
	}
	dst = append(dst, 'e', sign)
	if expDigits == 2 && exp < 10 {
		dst = append(dst, '0')
	}
	return strconv.AppendInt(dst, int64(exp), 10)
}

func appendFixed(dst, digits []byte, exp int) []byte {
	point := exp + 1
	switch {
	case point <= 0:
		dst = append(dst, "0."...)
		dst = appendZeros(dst, -point)
		return append(dst, digits...)
	case point < len(digits):
		dst = append(dst, digits[:point]...)
		dst = append(dst, '.')
		return append(dst, digits[point:]...)
	}
	dst = append(dst, digits...)
	dst = appendZeros(dst, point-len(digits))
	return append(dst, ".0"...)
}

func appendZeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}
