package pyvalue_test

import (
	"errors"
	"math"
	"testing"

	"github.com/proctor-run/proctor/internal/pyvalue"
	"github.com/proctor-run/proctor/internal/vectors"
)

// TestVectors runs the recorded arithmetic and number text.
func TestVectors(t *testing.T) {
	t.Parallel()
	for file, run := range map[string]func(t *testing.T, c *pyvalue.Object){
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

func arith(t *testing.T, c *pyvalue.Object) {
	var got pyvalue.Number
	var err error
	switch op := vectors.Str(c, "op"); op {
	case "sum":
		got, err = pyvalue.Sum(numbers(t, vectors.Get(c, "values")))
	case "max":
		got, err = pyvalue.Max(numbers(t, vectors.Get(c, "values")))
	case "min":
		got, err = pyvalue.Min(numbers(t, vectors.Get(c, "values")))
	case "truediv":
		got, err = pyvalue.Div(vectors.Number(t, vectors.Get(c, "a")), vectors.Number(t, vectors.Get(c, "b")))
	default:
		t.Fatalf("unknown operation %q", op)
	}
	checkNumber(t, c, got, err)
}

func rounding(t *testing.T, c *pyvalue.Object) {
	var x float64
	var err error
	if vectors.Str(c, "op") == "round" {
		x, err = pyvalue.ToFloat(vectors.Number(t, vectors.Get(c, "x")))
	} else {
		var score, total float64
		if score, err = pyvalue.ToFloat(vectors.Number(t, vectors.Get(c, "score"))); err == nil {
			total, err = pyvalue.ToFloat(vectors.Number(t, vectors.Get(c, "total")))
		}
		x = score * total
	}
	if err != nil {
		checkNumber(t, c, nil, err)
		return
	}
	got, err := pyvalue.RoundHalfEven(x)
	checkNumber(t, c, got, err)
}

func floatText(t *testing.T, c *pyvalue.Object) {
	n := vectors.Number(t, vectors.Get(c, "v"))
	want := vectors.Get(c, "want").(*pyvalue.Object)
	check := func(column, got string) {
		if vectors.Str(want, column) != got {
			t.Errorf("%s of %s: got %s, want %s", column, pyvalue.Repr(n), got, vectors.Str(want, column))
		}
	}
	check("json", string(pyvalue.AppendPydantic(nil, n, 0)))
	check("key", pyvalue.Repr(n))
	check("py", string(pyvalue.AppendDumps(nil, n, pyvalue.DumpsOptions{})))
	f, err := pyvalue.ToFloat(n)
	if want.Has("float_field_json_error") {
		if !errors.Is(err, pyvalue.OverflowError) {
			t.Errorf("float of %s: got error %v, want an OverflowError", pyvalue.Repr(n), err)
		}
		return
	}
	check("float_field_json", string(pyvalue.AppendPydanticFloat(nil, f)))
}

func checkNumber(t *testing.T, c *pyvalue.Object, got pyvalue.Number, err error) {
	t.Helper()
	want := vectors.Get(c, "want").(*pyvalue.Object)
	if want.Has("error") {
		var e *pyvalue.Error
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
func same(a, b pyvalue.Number) bool {
	if x, ok := a.(pyvalue.Int); ok {
		y, ok := b.(pyvalue.Int)
		return ok && x.Cmp(y) == 0
	}
	x, ok := a.(pyvalue.Float)
	if !ok {
		return false
	}
	y, ok := b.(pyvalue.Float)
	if math.IsNaN(float64(x)) || math.IsNaN(float64(y)) {
		return ok && math.IsNaN(float64(x)) && math.IsNaN(float64(y))
	}
	return ok && math.Float64bits(float64(x)) == math.Float64bits(float64(y))
}

func numbers(t *testing.T, v pyvalue.Value) []pyvalue.Number {
	t.Helper()
	var out []pyvalue.Number
	for _, e := range v.(pyvalue.List) {
		out = append(out, vectors.Number(t, e))
	}
	return out
}
