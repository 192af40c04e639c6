package value_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/proctor-run/proctor/value"
)

// FuzzDecode checks that what is decoded is written and read back the same, in
// every layout, and that whatever Go's own decoder accepts is accepted.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"a": [1, 2.5, -0, 1e400, NaN, null, true], "a": "\ud83d\ude00\ud800 \u0000é"}`,
		`[[[{"": {}}]]]`, "[\r\n-Infinity,\t123456789012345678901234567890]", `"\ud800\ud800"`, `"`, `{"a":1,}`, "\ufeff1",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := value.Decode(data)
		if err != nil {
			var e *value.Error
			if !errors.As(err, &e) || e.Message == "" {
				t.Fatalf("error of an unknown kind: %v", err)
			}
			if json.Valid(data) && bytes.IndexByte(data, '\r') < 0 && errors.Is(err, value.JSONDecodeError) {
				t.Fatalf("refused valid JSON %q: %v", data, err)
			}
			return
		}
		for _, o := range []value.DumpsOptions{{}, {Indent: 2}, {ItemSeparator: ",", KeySeparator: ":"}} {
			text := value.AppendDumps(nil, v, o)
			back, err := value.Decode(text)
			if err != nil {
				t.Fatalf("reading back %s: %v", text, err)
			}
			if a, b := value.Repr(v), value.Repr(back); a != b {
				t.Fatalf("%q came back as %s, was %s", data, b, a)
			}
		}
		for _, indent := range []int{0, 4} {
			text := value.AppendPydantic(nil, v, indent)
			if _, err := value.Decode(text); err != nil {
				t.Fatalf("reading back %s: %v", text, err)
			}
			if !json.Valid(text) {
				t.Fatalf("%q gives invalid JSON %s", data, text)
			}
		}
	})
}

// FuzzNumerals checks that the readers of numbers agree where their grammars
// meet and that number text reads back.
func FuzzNumerals(f *testing.F) {
	for _, seed := range []string{" 1_0.5\n", "\u0661", "-inf", "1e400", "0-1", " 1_000 ", "1_.5", "0x1", "-00.00e-0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		strict, isStrict := value.FloatLiteral(text)
		float, err := value.ParseFloat(text)
		if isStrict && (err != nil || !same(strict, float)) {
			t.Fatalf("%q: literal %v, but float %v, error %v", text, strict, float, err)
		}
		if err == nil {
			back, err := value.ParseFloat(value.FloatRepr(float64(float)))
			if err != nil || !same(float, back) {
				t.Fatalf("%q: %v came back as %v, error %v", text, float, back, err)
			}
		}
		if n, err := value.ParseInt(text); err == nil {
			if x, errFloat := value.ParseFloat(text); errFloat != nil {
				t.Fatalf("%q is int %s, but not a float", text, n)
			} else if y, errInt := n.Float64(); errInt == nil && y != float64(x) {
				t.Fatalf("%q is int %s, but float %v", text, n, x)
			}
		}
		if n, ok := value.LaxInt(text); ok {
			if m, ok := value.LaxInt(n.String()); !ok || m.Cmp(n) != 0 {
				t.Fatalf("%q is int %s, which is read as %s", text, n, m)
			}
		}
		if lax, ok := value.LaxFloat(text); isStrict && (!ok || !same(lax, strict)) {
			t.Fatalf("%q: literal %v, but lax %v, %v", text, strict, lax, ok)
		}
	})
}

// FuzzSum compares sums of doubles with exact arithmetic.
func FuzzSum(f *testing.F) {
	f.Add([]byte("0123456789abcdef01234567"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var floats []float64
		for len(data) >= 8 && len(floats) < 200 {
			x := math.Float64frombits(binary.LittleEndian.Uint64(data))
			if !math.IsNaN(x) && !math.IsInf(x, 0) {
				floats = append(floats, x)
			}
			data = data[8:]
		}
		checkSum(t, floats)
	})
}
