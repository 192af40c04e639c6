package value_test

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/value"
)

var huge = value.NewBigInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(400), nil))

func TestSummationGivesEveryTotal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOf(anyNumber()).Draw(t, "items")
		var s value.Summation
		for i, x := range items {
			errAdd := s.Add(x)
			want, errSum := value.Sum(items[:i+1])
			if (errAdd == nil) != (errSum == nil) {
				t.Fatalf("adding item %d: got error %v, want %v", i, errAdd, errSum)
			}
			if errSum == nil && !same(s.Total(), want) {
				t.Fatalf("after item %d: got %v, want %v", i, s.Total(), want)
			}
		}
	})
}

func TestSummationErrorStays(t *testing.T) {
	t.Parallel()
	var s value.Summation
	for i, x := range []value.Number{value.Float(0.5), huge, value.Float(1), value.NewInt(1)} {
		if err := s.Add(x); (i > 0) != errors.Is(err, value.OverflowError) {
			t.Errorf("item %d: got error %v", i, err)
		}
	}
	if !same(s.Total(), value.Float(0.5)) {
		t.Errorf("got total %v", s.Total())
	}
}

// TestSumError compares sums of floats with exact rational arithmetic: the error of
// the compensated sum is at most that of one rounding plus a term of second order.
func TestSumError(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		checkSum(t, rapid.SliceOf(rapid.Float64Range(-1e300, 1e300)).Draw(t, "items"))
	})
}

type fataler interface{ Fatalf(string, ...any) }

func checkSum(t fataler, floats []float64) {
	exact, magnitude := new(big.Rat), new(big.Rat)
	items := make([]value.Number, len(floats))
	for i, f := range floats {
		items[i] = value.Float(f)
		r := new(big.Rat).SetFloat64(f)
		exact.Add(exact, r)
		magnitude.Add(magnitude, r.Abs(r))
	}
	got, err := value.Sum(items)
	if err != nil {
		t.Fatalf("got error %v", err)
	}
	f, err := value.ToFloat(got)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return // beyond the range on the way
	}
	diff := new(big.Rat).SetFloat64(f)
	diff.Abs(diff.Sub(diff, exact))
	unit := new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Lsh(big.NewInt(1), 53))
	n := new(big.Rat).SetInt64(int64(len(floats) + 1))
	second := new(big.Rat).Mul(unit, unit)
	second.Mul(second, magnitude).Mul(second, n.Mul(n, n)).Mul(second, big.NewRat(2, 1))
	bound := new(big.Rat).Mul(unit, new(big.Rat).Abs(exact))
	if diff.Cmp(bound.Add(bound, second)) > 0 {
		t.Fatalf("sum of %v: got %v, which is off by %s", floats, f, diff.FloatString(30))
	}
}

// TestDivIsRoundedOnce compares with a quotient of 400 bits.
func TestDivIsRoundedOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyInt().Draw(t, "a"), anyInt().Draw(t, "b")
		got, err := value.Div(a, b)
		if b.Sign() == 0 {
			if !errors.Is(err, value.ZeroDivisionError) {
				t.Fatalf("got %v, error %v", got, err)
			}
			return
		}
		// 600 bits tell apart all quotients of ints this size, ties included.
		q := new(big.Float).SetPrec(600).Quo(new(big.Float).SetInt(a.Big()), new(big.Float).SetInt(b.Big()))
		want, _ := q.Float64()
		if want == 0 && b.Sign() < 0 {
			want = math.Copysign(0, -1)
		}
		if err != nil || !same(got, value.Float(want)) {
			t.Fatalf("got %v, error %v; want %v", got, err, want)
		}
	})
}

// TestCompareIsExact compares with rational arithmetic.
func TestCompareIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyNumber().Draw(t, "a"), anyNumber().Draw(t, "b")
		c, ordered := value.Compare(a, b)
		if back, ok := value.Compare(b, a); back != -c || ok != ordered {
			t.Fatalf("one way %d, %v, the other %d, %v", c, ordered, back, ok)
		}
		x, y := rational(a), rational(b)
		if x == nil || y == nil {
			return
		}
		if want := x.Cmp(y); !ordered || c != want {
			t.Fatalf("got %d, %v; want %d", c, ordered, want)
		}
	})
}

func rational(n value.Number) *big.Rat {
	if i, ok := n.(value.Int); ok {
		return new(big.Rat).SetInt(i.Big())
	}
	return new(big.Rat).SetFloat64(float64(n.(value.Float)))
}

func anyInt() *rapid.Generator[value.Int] {
	return rapid.Custom(func(t *rapid.T) value.Int {
		n := big.NewInt(rapid.Int64().Draw(t, "low"))
		if rapid.Bool().Draw(t, "large") {
			n.Lsh(n, uint(rapid.IntRange(0, 100).Draw(t, "shift")))
			n.Add(n, big.NewInt(rapid.Int64Range(-2, 2).Draw(t, "near")))
		}
		return value.NewBigInt(n)
	})
}

func anyNumber() *rapid.Generator[value.Number] {
	special := []value.Number{
		value.Float(math.NaN()), value.Float(math.Inf(1)), value.Float(math.Inf(-1)), value.Float(math.Copysign(0, -1)),
		value.NewInt(0), value.NewInt(math.MaxInt64), value.NewInt(math.MinInt64), value.NewInt(1<<53 + 1),
		value.Float(1 << 53), value.Float(0.1), value.Float(1e308), huge,
	}
	return rapid.OneOf(
		rapid.SampledFrom(special),
		rapid.Map(anyInt(), func(n value.Int) value.Number { return n }),
		rapid.Map(rapid.Float64(), func(f float64) value.Number { return value.Float(f) }),
	)
}

func TestTruncate(t *testing.T) {
	t.Parallel()
	for f, want := range map[float64]string{0.4: "0", -0.4: "0", -1.9: "-1", 1e16: "10000000000000000", -1 << 63: "-9223372036854775808", 1e23: "99999999999999991611392"} {
		if n, err := value.Truncate(f); err != nil || n.String() != want {
			t.Errorf("%v: got %s, error %v; want %s", f, n, err, want)
		}
	}
	if _, err := value.Truncate(math.NaN()); !errors.Is(err, value.ValueError) {
		t.Errorf("nan: got error %v", err)
	}
	if _, err := value.Truncate(math.Inf(-1)); !errors.Is(err, value.OverflowError) {
		t.Errorf("-inf: got error %v", err)
	}
}

func TestIntAdd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyInt().Draw(t, "a"), anyInt().Draw(t, "b")
		want := new(big.Int).Add(a.Big(), b.Big())
		if got := a.Add(b); got.Big().Cmp(want) != 0 || got.Cmp(value.NewBigInt(want)) != 0 {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}
