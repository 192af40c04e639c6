package value_test

import (
	"errors"
	"math"
	"testing"

	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/value"
)

// TestVectors runs the recorded arithmetic and number text.
func TestVectors(t *testing.T) {
	t.Parallel()
	for file, run := range map[string]func(t *testing.T, c *value.Object){
		"arith.jsonl":           arith,
		"float_text.jsonl":      floatText,
		"round_half_even.jsonl": rounding,
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			vectors.Each(t, "rewards/"+file, run)
		})
	}
}

func arith(t *testing.T, c *value.Object) {
	var got value.Number
	var err error
	switch op := vectors.Str(c, "op"); op {
	case "sum":
		got, err = value.Sum(numbers(t, vectors.Get(c, "values")))
	case "max":
		got, err = value.Max(numbers(t, vectors.Get(c, "values")))
	case "min":
		got, err = value.Min(numbers(t, vectors.Get(c, "values")))
	case "truediv":
		got, err = value.Div(vectors.Number(t, vectors.Get(c, "a")), vectors.Number(t, vectors.Get(c, "b")))
	default:
		t.Fatalf("unknown operation %q", op)
	}
	checkNumber(t, c, got, err)
}

func rounding(t *testing.T, c *value.Object) {
	var x float64
	var err error
	if vectors.Str(c, "op") == "round" {
		x, err = value.ToFloat(vectors.Number(t, vectors.Get(c, "x")))
	} else {
		var score, total float64
		if score, err = value.ToFloat(vectors.Number(t, vectors.Get(c, "score"))); err == nil {
			total, err = value.ToFloat(vectors.Number(t, vectors.Get(c, "total")))
		}
		x = score * total
	}
	if err != nil {
		checkNumber(t, c, nil, err)
		return
	}
	got, err := value.RoundHalfEven(x)
	checkNumber(t, c, got, err)
}

func floatText(t *testing.T, c *value.Object) {
	n := vectors.Number(t, vectors.Get(c, "v"))
	want := vectors.Get(c, "want").(*value.Object)
	check := func(column, got string) {
		if vectors.Str(want, column) != got {
			t.Errorf("%s of %s: got %s, want %s", column, value.Repr(n), got, vectors.Str(want, column))
		}
	}
	check("json", string(value.AppendPydantic(nil, n, 0)))
	check("key", value.Repr(n))
	check("py", string(value.AppendDumps(nil, n, value.DumpsOptions{})))
	f, err := value.ToFloat(n)
	if want.Has("float_field_json_error") {
		if !errors.Is(err, value.OverflowError) {
			t.Errorf("float of %s: got error %v, want an OverflowError", value.Repr(n), err)
		}
		return
	}
	check("float_field_json", string(value.AppendPydanticFloat(nil, f)))
}

func checkNumber(t *testing.T, c *value.Object, got value.Number, err error) {
	t.Helper()
	want := vectors.Get(c, "want").(*value.Object)
	if want.Has("error") {
		var e *value.Error
		if !errors.As(err, &e) || e.ErrorType() != vectors.Str(want, "error") || e.Message != vectors.Str(want, "message") {
			t.Errorf("got %v, error %v; want %s: %s", got, err, vectors.Str(want, "error"), vectors.Str(want, "message"))
		}
		return
	}
	if w := vectors.Number(t, vectors.Get(want, "value")); err != nil || !same(got, w) {
		t.Errorf("got %v, error %v; want %v", got, err, w)
	}
}

// same tells kinds apart, and zeros, but not nans.
func same(a, b value.Number) bool {
	if x, ok := a.(value.Int); ok {
		y, ok := b.(value.Int)
		return ok && x.Cmp(y) == 0
	}
	x, ok := a.(value.Float)
	if !ok {
		return false
	}
	y, ok := b.(value.Float)
	if math.IsNaN(float64(x)) || math.IsNaN(float64(y)) {
		return ok && math.IsNaN(float64(x)) && math.IsNaN(float64(y))
	}
	return ok && math.Float64bits(float64(x)) == math.Float64bits(float64(y))
}

func numbers(t *testing.T, v value.Value) []value.Number {
	t.Helper()
	var out []value.Number
	for _, e := range v.(value.List) {
		out = append(out, vectors.Number(t, e))
	}
	return out
}
