package pyvalue_test

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/internal/pyvalue"
)

var huge = pyvalue.NewBigInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(400), nil))

func TestSummationGivesEveryTotal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOf(anyNumber()).Draw(t, "items")
		var s pyvalue.Summation
		for i, x := range items {
			errAdd := s.Add(x)
			want, errSum := pyvalue.Sum(items[:i+1])
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
	var s pyvalue.Summation
	for i, x := range []pyvalue.Number{pyvalue.Float(0.5), huge, pyvalue.Float(1), pyvalue.NewInt(1)} {
		if err := s.Add(x); (i > 0) != errors.Is(err, pyvalue.OverflowError) {
			t.Errorf("item %d: got error %v", i, err)
		}
	}
	if !same(s.Total(), pyvalue.Float(0.5)) {
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
	items := make([]pyvalue.Number, len(floats))
	for i, f := range floats {
		items[i] = pyvalue.Float(f)
		r := new(big.Rat).SetFloat64(f)
		exact.Add(exact, r)
		magnitude.Add(magnitude, r.Abs(r))
	}
	got, err := pyvalue.Sum(items)
	if err != nil {
		t.Fatalf("got error %v", err)
	}
	f, err := pyvalue.ToFloat(got)
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
		got, err := pyvalue.Div(a, b)
		if b.Sign() == 0 {
			if !errors.Is(err, pyvalue.ZeroDivisionError) {
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
		if err != nil || !same(got, pyvalue.Float(want)) {
			t.Fatalf("got %v, error %v; want %v", got, err, want)
		}
	})
}

// TestCompareIsExact compares with rational arithmetic.
func TestCompareIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyNumber().Draw(t, "a"), anyNumber().Draw(t, "b")
		c, ordered := pyvalue.Compare(a, b)
		if back, ok := pyvalue.Compare(b, a); back != -c || ok != ordered {
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

func rational(n pyvalue.Number) *big.Rat {
	if i, ok := n.(pyvalue.Int); ok {
		return new(big.Rat).SetInt(i.Big())
	}
	return new(big.Rat).SetFloat64(float64(n.(pyvalue.Float)))
}

func anyInt() *rapid.Generator[pyvalue.Int] {
	return rapid.Custom(func(t *rapid.T) pyvalue.Int {
		n := big.NewInt(rapid.Int64().Draw(t, "low"))
		if rapid.Bool().Draw(t, "large") {
			n.Lsh(n, uint(rapid.IntRange(0, 100).Draw(t, "shift")))
			n.Add(n, big.NewInt(rapid.Int64Range(-2, 2).Draw(t, "near")))
		}
		return pyvalue.NewBigInt(n)
	})
}

func anyNumber() *rapid.Generator[pyvalue.Number] {
	special := []pyvalue.Number{
		pyvalue.Float(math.NaN()), pyvalue.Float(math.Inf(1)), pyvalue.Float(math.Inf(-1)), pyvalue.Float(math.Copysign(0, -1)),
		pyvalue.NewInt(0), pyvalue.NewInt(math.MaxInt64), pyvalue.NewInt(math.MinInt64), pyvalue.NewInt(1<<53 + 1),
		pyvalue.Float(1 << 53), pyvalue.Float(0.1), pyvalue.Float(1e308), huge,
	}
	return rapid.OneOf(
		rapid.SampledFrom(special),
		rapid.Map(anyInt(), func(n pyvalue.Int) pyvalue.Number { return n }),
		rapid.Map(rapid.Float64(), func(f float64) pyvalue.Number { return pyvalue.Float(f) }),
	)
}

func TestTruncate(t *testing.T) {
	t.Parallel()
	for f, want := range map[float64]string{0.4: "0", -0.4: "0", -1.9: "-1", 1e16: "10000000000000000", -1 << 63: "-9223372036854775808", 1e23: "99999999999999991611392"} {
		if n, err := pyvalue.Truncate(f); err != nil || n.String() != want {
			t.Errorf("%v: got %s, error %v; want %s", f, n, err, want)
		}
	}
	if _, err := pyvalue.Truncate(math.NaN()); !errors.Is(err, pyvalue.ValueError) {
		t.Errorf("nan: got error %v", err)
	}
	if _, err := pyvalue.Truncate(math.Inf(-1)); !errors.Is(err, pyvalue.OverflowError) {
		t.Errorf("-inf: got error %v", err)
	}
}

func TestIntAdd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyInt().Draw(t, "a"), anyInt().Draw(t, "b")
		want := new(big.Int).Add(a.Big(), b.Big())
		if got := a.Add(b); got.Big().Cmp(want) != 0 || got.Cmp(pyvalue.NewBigInt(want)) != 0 {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}
