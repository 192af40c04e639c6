package value_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/value"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{ // want is the repr
		`null`: "None", `true`: "True", `false`: "False",
		` { } `: "{}", "\t[\n]\r": "[]",
		`-0`: "0", `-0.0`: "-0.0", `-0e0`: "-0.0", `1e5`: "100000.0", `1E+2`: "100.0",
		`1e400`: "inf", `-1e400`: "-inf", `1e-400`: "0.0",
		`NaN`: "nan", `Infinity`: "inf", `-Infinity`: "-inf",
		`9223372036854775807`: "9223372036854775807", `-9223372036854775809`: "-9223372036854775809",
		`{"a":1,"b":2,"a":3}`:      "{'a': 3, 'b': 2}",
		`[1, [2, {"x": []}], "y"]`: "[1, [2, {'x': []}], 'y']",
		`"\u00e9\n\/\"\\"`:         `'é\n/"\\'`,
		`"\ud83d\ude00"`:           "'😀'",
		`"\ud83d\u0041\ude00"`:     `'\ud83dA\ude00'`,
		`"\ude00\ud83d"`:           `'\ude00\ud83d'`,
		`{"\ud800": "\u007f"}`:     `{'\ud800': '\x7f'}`,
	} {
		v, err := value.Decode([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := value.Repr(v); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                      "Expecting value: line 1 column 1 (char 0)",
		" \n ":                  "Expecting value: line 2 column 2 (char 3)",
		"\ufeff1":               "Unexpected UTF-8 BOM (decode using utf-8-sig): line 1 column 1 (char 0)",
		"1 2":                   "Extra data: line 1 column 3 (char 2)",
		"01":                    "Extra data: line 1 column 2 (char 1)",
		"1.":                    "Extra data: line 1 column 2 (char 1)",
		"1_0":                   "Extra data: line 1 column 2 (char 1)",
		"1\v":                   "Extra data: line 1 column 2 (char 1)",
		"+1":                    "Expecting value: line 1 column 1 (char 0)",
		".5":                    "Expecting value: line 1 column 1 (char 0)",
		"-":                     "Expecting value: line 1 column 1 (char 0)",
		"-NaN":                  "Expecting value: line 1 column 1 (char 0)",
		"nul":                   "Expecting value: line 1 column 1 (char 0)",
		"[1,]":                  "Expecting value: line 1 column 4 (char 3)",
		"[1 2]":                 "Expecting ',' delimiter: line 1 column 4 (char 3)",
		"[":                     "Expecting value: line 1 column 2 (char 1)",
		"[1":                    "Expecting ',' delimiter: line 1 column 3 (char 2)",
		`{"a":1,}`:              "Expecting property name enclosed in double quotes: line 1 column 8 (char 7)",
		`{a:1}`:                 "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
		`{"a" 1}`:               "Expecting ':' delimiter: line 1 column 6 (char 5)",
		"\"\u00e9\u20ac\\x\"":   "Invalid \\escape: line 1 column 4 (char 3)",
		"[\r\n\"a\r\nb\"]":      "Invalid control character at: line 2 column 3 (char 4)",
		`"abc`:                  "Unterminated string starting at: line 1 column 1 (char 0)",
		`"abc\`:                 "Unterminated string starting at: line 1 column 1 (char 0)",
		`"\u12"`:                "Invalid \\uXXXX escape: line 1 column 3 (char 2)",
		`"\ud83d\u12x4"`:        "Invalid \\uXXXX escape: line 1 column 9 (char 8)",
		"{\n \"k\": [1,\n  x]}": "Expecting value: line 3 column 3 (char 14)",
	} {
		_, err := value.Decode([]byte(text))
		var e *value.Error
		switch {
		case !errors.As(err, &e):
			t.Errorf("%q: got error %v, want one of this package", text, err)
		case e.Message != want || !errors.Is(err, value.JSONDecodeError) || !errors.Is(err, value.ValueError):
			t.Errorf("%q: got %s %q, want %q", text, e.ErrorType(), e.Message, want)
		case e.Line < 1 || e.Column < 1:
			t.Errorf("%q: got line %d, column %d", text, e.Line, e.Column)
		}
	}
}

func TestDecodeLimits(t *testing.T) {
	t.Parallel()
	nested := func(open, inner, end string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"deepest":             {nested("[", "", "]", value.MaxDepth), nil},
		"too deep":            {nested("[", "", "]", value.MaxDepth+1), value.RecursionError},
		"deepest objects":     {nested(`{"":`, "1", "}", value.MaxDepth), nil},
		"too deep objects":    {nested(`{"":`, "1", "}", value.MaxDepth+1), value.RecursionError},
		"deep and unfinished": {strings.Repeat("[", 1_000_000), value.RecursionError},
		"wide, not deep":      {"[" + strings.Repeat("[],", 20_000) + "[]]", nil},
		"longest int":         {"-" + strings.Repeat("9", value.MaxIntDigits), nil},
		"too long int":        {strings.Repeat("9", value.MaxIntDigits+1), value.ValueError},
		"longer float":        {strings.Repeat("9", value.MaxIntDigits+1) + ".0", nil},
		"not UTF-8":           {"\"\xff\"", value.UnicodeDecodeError},
		"encoded surrogate":   {"\"\xed\xa0\x80\"", value.UnicodeDecodeError},
	} {
		v, err := value.Decode([]byte(c.text))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got error %v, want %v", name, err, c.want)
			continue
		}
		if err == nil {
			if back := string(value.AppendPydantic(nil, v, 0)); back != c.text && name != "longer float" {
				t.Errorf("%s: does not come back", name)
			}
		}
	}
}

func TestReadText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\r\nb\rc\n\r\r\n": "a\nb\nc\n\n\n",
		"\ufeffx":           "\ufeffx",
	} {
		if got, err := value.ReadText([]byte(in)); err != nil || got != want {
			t.Errorf("%q: got %q, error %v; want %q", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"ab\xff":       "'utf-8' codec can't decode byte 0xff in position 2: invalid start byte",
		"\xc3":         "'utf-8' codec can't decode byte 0xc3 in position 0: unexpected end of data",
		"\xe2\x82":     "'utf-8' codec can't decode bytes in position 0-1: unexpected end of data",
		"\xe2\x82a":    "'utf-8' codec can't decode bytes in position 0-1: invalid continuation byte",
		"\xed\xa0\x80": "'utf-8' codec can't decode byte 0xed in position 0: invalid continuation byte",
		"\xc0\x80":     "'utf-8' codec can't decode byte 0xc0 in position 0: invalid start byte",
		"é\xf5":        "'utf-8' codec can't decode byte 0xf5 in position 2: invalid start byte",
	} {
		if _, err := value.ReadText([]byte(in)); err == nil || err.Error() != want {
			t.Errorf("%q: got error %v, want %s", in, err, want)
		}
	}
}

func TestObject(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 200} { // below and above the size that has an index
		o := &value.Object{}
		names := make([]string, n)
		for i := range n {
			names[i] = strings.Repeat("k", i+1)
			o.Set(names[i], value.NewInt(int64(i)))
		}
		o.Set(names[1], value.Str("new"))
		o.Append(names[0], value.Null{})
		if o.Len() != n+1 {
			t.Errorf("%d names: got length %d", n, o.Len())
		}
		if v, ok := o.Get(names[1]); !ok || v != value.Str("new") {
			t.Errorf("%d names: got %v for a name set twice", n, v)
		}
		if v, _ := o.Get(names[0]); value.IsNull(v) {
			t.Errorf("%d names: a name appended twice hides the first", n)
		}
		o.Delete(names[0])
		if v, ok := o.Get(names[0]); !ok || !value.IsNull(v) {
			t.Errorf("%d names: got %v, %v after deleting the first of two", n, v, ok)
		}
		var order []string
		for name := range o.Keys() {
			order = append(order, name)
		}
		want := append(append([]string{}, names[1:]...), names[0])
		if strings.Join(order, ",") != strings.Join(want, ",") {
			t.Errorf("%d names: got order %v", n, order)
		}
		if o.Has("absent") {
			t.Errorf("%d names: has a name that it was not given", n)
		}
	}
}
