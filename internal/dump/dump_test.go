package dump_test

import (
	"testing"

	"github.com/proctor-run/proctor/internal/dump"
	"github.com/proctor-run/proctor/value"
)

func TestObject(t *testing.T) {
	t.Parallel()
	fill := func(o *dump.Object) *value.Object {
		text, n, x := "a", 3, 2.0
		o.Str("s", "t")
		o.OptStr("s0", nil)
		o.OptStr("s1", &text)
		o.Bool("b", true)
		o.Int("i", 1)
		o.OptInt("i0", nil)
		o.OptInt("i1", &n)
		o.Float("f", 1)
		o.OptFloat("f0", nil)
		o.OptFloat("f1", &x)
		o.Strs("l", nil)
		o.Dict("d", nil)
		o.Set("v", nil)
		o.Set("list", dump.List([]int{1, 2}, func(i int) value.Value { return value.NewInt(int64(i)) }))
		return o.Value()
	}
	for _, tt := range []struct {
		omit bool
		want string
	}{
		{false, `{"s":"t","s0":null,"s1":"a","b":true,"i":1,"i0":null,"i1":3,"f":1.0,"f0":null,"f1":2.0,"l":[],"d":{},"v":null,"list":[1,2]}`},
		{true, `{"s":"t","s1":"a","b":true,"i":1,"i1":3,"f":1.0,"f1":2.0,"l":[],"d":{},"list":[1,2]}`},
	} {
		got := string(value.AppendPydantic(nil, fill(&dump.Object{OmitNull: tt.omit}), 0))
		if got != tt.want {
			t.Errorf("OmitNull %v:\n got %s\nwant %s", tt.omit, got, tt.want)
		}
	}
}

func TestAppendCanonical(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{`{"a":1,"b":2}`, `{"b":2.0,"a":true}`, true},
		{`[1,2]`, `[2,1]`, false},
		{`0`, `-0.0`, true},
		{`0`, `false`, true},
		{`1e300`, `1e300`, true},
		{`9007199254740993`, `9007199254740992.0`, false},
		{`9007199254740992`, `9007199254740992.0`, true},
		{`"1"`, `1`, false},
		{`null`, `0`, false},
		{`{"a":null}`, `{}`, false},
		{`NaN`, `NaN`, true},
		{`Infinity`, `-Infinity`, false},
		{`[[],{}]`, `[{},[]]`, false},
		{`{"a":"b','c':'d"}`, `{"a":"b","c":"d"}`, false},
	} {
		got := canonical(t, tt.a) == canonical(t, tt.b)
		if got != tt.same {
			t.Errorf("%s and %s: same = %v, want %v", tt.a, tt.b, got, tt.same)
		}
	}
}

func canonical(t *testing.T, text string) string {
	t.Helper()
	v, err := value.DecodeText(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(dump.AppendCanonical(nil, v))
}
