package value

import (
	"math"
	"math/big"
	"strconv"
)

// MaxIntDigits is the number of decimal digits, sign and underscores not
// counted, beyond which Python refuses to turn text into an int or back.
const MaxIntDigits = 4300

// An Int is an integer of any size. The zero value is 0. Ints are not compared
// with ==; use [Int.Cmp] or [Compare].
type Int struct {
	small int64
	large *big.Int // set only when the value does not fit small; never changed
}

// NewInt returns n as an Int.
func NewInt(n int64) Int { return Int{small: n} }

// NewBigInt returns n as an Int and keeps no reference to it.
func NewBigInt(n *big.Int) Int {
	if n.IsInt64() {
		return Int{small: n.Int64()}
	}
	return Int{large: new(big.Int).Set(n)}
}

// Int64 returns the value and true if it fits an int64.
func (n Int) Int64() (int64, bool) { return n.small, n.large == nil }

// Clamp returns n where it is within -most and most, and else the one of them that it is
// beyond; 0 for nil.
func Clamp(n *Int, most int64) int64 {
	if n == nil {
		return 0
	}
	small, fits := n.Int64()
	if !fits {
		return int64(n.Sign()) * most
	}
	return min(max(small, -most), most)
}

// Big returns the value as a new big.Int.
func (n Int) Big() *big.Int { return new(big.Int).Set(n.big()) }

// big returns the value for reading only.
func (n Int) big() *big.Int {
	if n.large != nil {
		return n.large
	}
	return big.NewInt(n.small)
}

// Sign returns -1, 0 or 1.
func (n Int) Sign() int {
	switch {
	case n.large != nil:
		return n.large.Sign()
	case n.small < 0:
		return -1
	case n.small > 0:
		return 1
	}
	return 0
}

// Cmp returns -1, 0 or 1 as n is less than, equal to or greater than m.
func (n Int) Cmp(m Int) int {
	if n.large != nil || m.large != nil {
		return n.big().Cmp(m.big())
	}
	switch {
	case n.small < m.small:
		return -1
	case n.small > m.small:
		return 1
	}
	return 0
}

// Add returns n + m, exactly.
func (n Int) Add(m Int) Int {
	if n.large == nil && m.large == nil {
		if sum := n.small + m.small; (sum > n.small) == (m.small > 0) {
			return Int{small: sum}
		}
	}
	return normal(new(big.Int).Add(n.big(), m.big()))
}

// normal takes ownership of n.
func normal(n *big.Int) Int {
	if n.IsInt64() {
		return Int{small: n.Int64()}
	}
	return Int{large: n}
}

// Float64 returns the nearest double, ties to even. Beyond the range of doubles
// it is an OverflowError. (Reward semantics, section 7.2.)
func (n Int) Float64() (float64, error) {
	if n.large == nil {
		return float64(n.small), nil
	}
	f, _ := n.large.Float64()
	if math.IsInf(f, 0) {
		return 0, raise(OverflowError, "int too large to convert to float")
	}
	return f, nil
}

// String returns the decimal digits, however many they are.
func (n Int) String() string {
	if n.large != nil {
		return n.large.String()
	}
	return strconv.FormatInt(n.small, 10)
}

// Append appends the decimal digits to dst.
func (n Int) Append(dst []byte) []byte {
	if n.large != nil {
		return n.large.Append(dst, 10)
	}
	return strconv.AppendInt(dst, n.small, 10)
}
