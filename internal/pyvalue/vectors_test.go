package pyvalue_test

import (
	"bytes"
	"errors"
	"math"
	"math/big"
	"strconv"
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
			cases := 0
			for line := range bytes.Lines(vectors.File(t, "rewards/"+file)) {
				v, err := pyvalue.Decode(line)
				if err != nil {
					t.Fatalf("reading case %d of %s: %v", cases, file, err)
				}
				cases++
				t.Run(text(v.(*pyvalue.Object), "id"), func(t *testing.T) { run(t, v.(*pyvalue.Object)) })
			}
			t.Logf("%s: %d cases", file, cases)
		})
	}
}

func arith(t *testing.T, c *pyvalue.Object) {
	var got pyvalue.Number
	var err error
	switch op := text(c, "op"); op {
	case "sum":
		got, err = pyvalue.Sum(numbers(t, get(c, "values")))
	case "max":
		got, err = pyvalue.Max(numbers(t, get(c, "values")))
	case "min":
		got, err = pyvalue.Min(numbers(t, get(c, "values")))
	case "truediv":
		got, err = pyvalue.Div(number(t, get(c, "a")), number(t, get(c, "b")))
	default:
		t.Fatalf("unknown operation %q", op)
	}
	checkNumber(t, c, got, err)
}

func rounding(t *testing.T, c *pyvalue.Object) {
	var x float64
	var err error
	if text(c, "op") == "round" {
		x, err = pyvalue.ToFloat(number(t, get(c, "x")))
	} else {
		var score, total float64
		if score, err = pyvalue.ToFloat(number(t, get(c, "score"))); err == nil {
			total, err = pyvalue.ToFloat(number(t, get(c, "total")))
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
	n := number(t, get(c, "v"))
	want := get(c, "want").(*pyvalue.Object)
	check := func(column, got string) {
		if text(want, column) != got {
			t.Errorf("%s of %s: got %s, want %s", column, pyvalue.Repr(n), got, text(want, column))
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
	want := get(c, "want").(*pyvalue.Object)
	if want.Has("error") {
		var e *pyvalue.Error
		if !errors.As(err, &e) || e.ErrorType() != text(want, "error") || e.Message != text(want, "message") {
			t.Errorf("got %v, error %v; want %s: %s", got, err, text(want, "error"), text(want, "message"))
		}
		return
	}
	if w := number(t, get(want, "value")); err != nil || !same(got, w) {
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

func get(o *pyvalue.Object, key string) pyvalue.Value {
	v, _ := o.Get(key)
	return v
}

func text(o *pyvalue.Object, key string) string {
	s, _ := get(o, key).(pyvalue.Str)
	return string(s)
}

func numbers(t *testing.T, v pyvalue.Value) []pyvalue.Number {
	t.Helper()
	var out []pyvalue.Number
	for _, e := range v.(pyvalue.List) {
		out = append(out, number(t, e))
	}
	return out
}

func number(t *testing.T, v pyvalue.Value) pyvalue.Number {
	t.Helper()
	o := v.(*pyvalue.Object)
	if o.Has("i") {
		n, ok := new(big.Int).SetString(text(o, "i"), 10)
		if !ok {
			t.Fatalf("reading int %q", text(o, "i"))
		}
		return pyvalue.NewBigInt(n)
	}
	f, err := strconv.ParseFloat(text(o, "f"), 64)
	if err != nil {
		t.Fatal(err)
	}
	return pyvalue.Float(f)
}
