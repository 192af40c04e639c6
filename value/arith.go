package value

import (
	"math"
	"math/big"
)

// maxExact is the bound below which every int is a double.
const maxExact = 1 << 53

// Div is Python's a / b. Two ints give their exact quotient, rounded once;
// otherwise both become doubles first. A divisor of zero is a ZeroDivisionError, a
// result of two ints beyond the range of doubles an OverflowError. (Reward
// semantics, section 7.3.)
func Div(a, b Number) (Float, error) {
	n, isInt := a.(Int)
	m, bothInts := b.(Int)
	if isInt && bothInts {
		return divInts(n, m)
	}
	x, err := ToFloat(a)
	if err != nil {
		return 0, err
	}
	y, err := ToFloat(b)
	if err != nil {
		return 0, err
	}
	if y == 0 {
		return 0, raise(ZeroDivisionError, "float division by zero")
	}
	return Float(x / y), nil
}

func divInts(n, m Int) (Float, error) {
	switch {
	case m.Sign() == 0:
		return 0, raise(ZeroDivisionError, "division by zero")
	case n.isExact() && m.isExact():
		return quotient(float64(n.small)/float64(m.small), n, m), nil
	}
	q, _ := new(big.Rat).SetFrac(n.big(), m.big()).Float64()
	if math.IsInf(q, 0) {
		return 0, raise(OverflowError, "integer division result too large for a float")
	}
	return quotient(q, n, m), nil
}

// quotient gives a result of zero the sign that Python gives it: that of the
// divisor for a dividend of 0, which int 0 lacks, and that of the exact quotient
// when it underflows.
func quotient(q float64, n, m Int) Float {
	if q != 0 {
		return Float(q)
	}
	if (n.Sign() < 0) != (m.Sign() < 0) {
		return Float(math.Copysign(0, -1))
	}
	return 0
}

func (n Int) isExact() bool {
	return n.large == nil && n.small > -maxExact && n.small < maxExact
}

// Max is Python's max(items): the first item that no later one exceeds, of its
// own kind. Nothing is a ValueError. (Reward semantics, section 7.4.)
func Max(items []Number) (Number, error) { return extreme(items, 1, "max") }

// Min is Python's min(items), as [Max].
func Min(items []Number) (Number, error) { return extreme(items, -1, "min") }

func extreme(items []Number, want int, name string) (Number, error) {
	if len(items) == 0 {
		return nil, raise(ValueError, "%s() iterable argument is empty", name)
	}
	best := items[0]
	for _, x := range items[1:] {
		if c, ordered := Compare(x, best); ordered && c == want {
			best = x
		}
	}
	return best, nil
}

// Compare returns -1, 0 or 1 as a is less than, equal to or greater than b. An
// int and a float are compared exactly. With a nan there is no order, and ordered is
// false.
func Compare(a, b Number) (c int, ordered bool) {
	switch x := a.(type) {
	case Int:
		switch y := b.(type) {
		case Int:
			return x.Cmp(y), true
		case Float:
			return compareIntFloat(x, float64(y))
		}
	case Float:
		switch y := b.(type) {
		case Int:
			c, ordered = compareIntFloat(y, float64(x))
			return -c, ordered
		case Float:
			return compareFloats(float64(x), float64(y))
		}
	}
	return 0, false
}

func compareFloats(x, y float64) (int, bool) {
	switch {
	case x < y:
		return -1, true
	case x > y:
		return 1, true
	}
	return 0, x == y
}

func compareIntFloat(n Int, f float64) (int, bool) {
	switch {
	case math.IsNaN(f):
		return 0, false
	case n.isExact():
		return compareFloats(float64(n.small), f)
	case math.IsInf(f, 1):
		return -1, true
	case math.IsInf(f, -1):
		return 1, true
	}
	whole, fraction := math.Modf(f)
	if c := n.Cmp(wholeInt(whole)); c != 0 {
		return c, true
	}
	return compareFloats(0, fraction)
}

// wholeInt returns a finite double without fraction as an Int.
func wholeInt(f float64) Int {
	if math.Abs(f) < 1<<62 {
		return NewInt(int64(f))
	}
	n, _ := big.NewFloat(f).Int(nil)
	return normal(n)
}

// RoundHalfEven is Python's round(x): the nearest int, ties to even, exact for
// any size. nan is a ValueError, an infinity an OverflowError. (Reward semantics,
// section 12.)
func RoundHalfEven(x float64) (Int, error) {
	if err := finite(x); err != nil {
		return Int{}, err
	}
	return wholeInt(math.RoundToEven(x)), nil
}

// Truncate is Python's int(x): toward zero. Errors are those of
// [RoundHalfEven].
func Truncate(x float64) (Int, error) {
	if err := finite(x); err != nil {
		return Int{}, err
	}
	return wholeInt(math.Trunc(x)), nil
}

func finite(x float64) error {
	switch {
	case math.IsNaN(x):
		return raise(ValueError, "cannot convert float NaN to integer")
	case math.IsInf(x, 0):
		return raise(OverflowError, "cannot convert float infinity to integer")
	}
	return nil
}
