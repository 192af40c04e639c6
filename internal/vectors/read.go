package vectors

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"testing"

	"github.com/proctor-run/proctor/value"
)

// Each runs a function as a subtest for every line of a .jsonl file, and logs
// how many there were. A file without a case is a failure: it would be a test
// that asserts nothing. An object {"$float": text} stands for a float.
func Each(t *testing.T, file string, run func(t *testing.T, c *value.Object)) {
	t.Helper()
	cases, err := read(File(t, file))
	if err != nil {
		t.Fatalf("reading %s: %v", file, err)
	}
	for _, c := range cases {
		t.Run(Str(c, "id"), func(t *testing.T) { run(t, c) })
	}
	t.Logf("%s: %d cases", file, len(cases))
}

func read(data []byte) ([]*value.Object, error) {
	var cases []*value.Object
	for line := range bytes.Lines(data) {
		v, err := value.Decode(line)
		if err != nil {
			return nil, fmt.Errorf("case %d: %w", len(cases), err)
		}
		c, ok := floats(v).(*value.Object)
		if !ok {
			return nil, fmt.Errorf("case %d is not an object", len(cases))
		}
		cases = append(cases, c)
	}
	if len(cases) == 0 {
		return nil, errors.New("there is no case in it")
	}
	return cases, nil
}

func floats(v value.Value) value.Value {
	switch v := v.(type) {
	case value.List:
		for i, item := range v {
			v[i] = floats(item)
		}
	case *value.Object:
		if text, ok := v.Get("$float"); ok {
			f, _ := value.FloatLiteral(string(text.(value.Str)))
			return f
		}
		out := value.NewObject(v.Len())
		for key, item := range v.All() {
			out.Set(key, floats(item))
		}
		return out
	}
	return v
}

// Get returns a member, nil when it is missing.
func Get(o *value.Object, key string) value.Value {
	v, _ := o.Get(key)
	return v
}

// Str returns a member that is text, "" for anything else.
func Str(o *value.Object, key string) string {
	s, _ := Get(o, key).(value.Str)
	return string(s)
}

// Object returns a member that is an object, nil for anything else.
func Object(o *value.Object, key string) *value.Object {
	v, _ := Get(o, key).(*value.Object)
	return v
}

// List returns a member that is a list, nil for anything else.
func List(o *value.Object, key string) value.List {
	l, _ := Get(o, key).(value.List)
	return l
}

// Bool returns a member that is a boolean, false for anything else.
func Bool(o *value.Object, key string) bool {
	b, _ := Get(o, key).(value.Bool)
	return bool(b)
}

// Int returns a member that is an int, 0 for anything else.
func Int(o *value.Object, key string) int {
	n, _ := Get(o, key).(value.Int)
	i, _ := n.Int64()
	return int(i)
}

// Number reads {"i": decimal} and {"f": decimal}.
func Number(t testing.TB, v value.Value) value.Number {
	t.Helper()
	o := v.(*value.Object)
	if o.Has("i") {
		n, ok := new(big.Int).SetString(Str(o, "i"), 10)
		if !ok {
			t.Fatalf("reading int %q", Str(o, "i"))
		}
		return value.NewBigInt(n)
	}
	f, err := strconv.ParseFloat(Str(o, "f"), 64)
	if err != nil {
		t.Fatal(err)
	}
	return value.Float(f)
}
