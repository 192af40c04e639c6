package yaml11_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/yaml11"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

func TestScalars(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"yes": "True", "Off": "False", "oN": "'oN'", "y": "'y'", "true": "True", "'true'": "'true'",
		"~": "None", "null": "None", "Null": "None", "nULL": "'nULL'", "''": "''",
		"12": "12", "-0": "0", "+1_000": "1000", "010": "8", "0b101": "5", "0x1F": "31", "0o17": "'0o17'",
		"08": "'08'", "1:30": "90", "-1:30:05": "-5405", "1:60": "'1:60'", "99999999999999999999": "99999999999999999999",
		"2.0": "2.0", "1e3": "'1e3'", "1.0e+3": "1000.0", "1.5e3": "'1.5e3'", ".5": "0.5", "-.5": "'-.5'",
		".inf": "inf", "-.Inf": "-inf", ".NaN": "nan", "1:30.5": "90.5", "1.": "1.0", "1_0.2_5": "10.25", ".": "'.'",
		"2024-01-02": "2024-01-02", "2024-1-2": "'2024-1-2'", "2024-1-2 3:04:05": "2024-01-02T03:04:05",
		"2024-01-02T03:04:05.5Z": "2024-01-02T03:04:05.500000Z", "2024-01-02 03:04:05 -3:30": "2024-01-02T03:04:05-03:30",
		"!!str 12": "'12'", "!!int '12'": "12", "!!float 3": "3.0", "! 12": "12", "'12'": "'12'",
		"|\n a\n b\n": "'a\\nb\\n'", ">-\n a\n b\n": "'a b'", `"\u00e9"`: "'é'",
	}
	for text, want := range tests {
		v, err := yaml11.Decode([]byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := show(v); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

func show(v value.Value) string {
	if tm, ok := v.(schema.Temporal); ok {
		return string(tm.Value.(value.Str))
	}
	return value.Repr(v)
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"empty", "", "None"},
		{"only a comment", "# nothing\n", "None"},
		{"order and duplicates", "b: 1\na: 2\nb: 3\n", "{'b': 3, 'a': 2}"},
		{"flow", "{a: [1, yes, {b: ~}]}", "{'a': [1, True, {'b': None}]}"},
		{"alias", "a: &x [1]\nb: *x\n", "{'a': [1], 'b': [1]}"},
		{"merge", "base: &b {x: 1, y: 2}\nc:\n  y: 3\n  <<: *b\n", "{'base': {'x': 1, 'y': 2}, 'c': {'x': 1, 'y': 3}}"},
		{"merge list", "c:\n  <<: [{a: 1}, {a: 2, b: 2}]\n", "{'c': {'a': 1, 'b': 2}}"},
		{"quoted merge key", "'<<': 1", "{'<<': 1}"},
		{"explicit document", "---\na: 1\n...\n", "{'a': 1}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v, err := yaml11.Decode([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := value.Repr(v); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	bomb := "a0: &a0 [x, x]\n"
	for i := range 30 {
		bomb += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	tests := []struct{ name, text, want string }{
		{"syntax", "a: 1\nb: [2\n", "did not find expected"},
		{"two documents", "a: 1\n---\nb: 2\n", "expected a single document"},
		{"key that is no string", "a:\n  1: x\n", `line 2: the key 1 is not a string`},
		{"unknown tag", "a: !!python/object:os.system x\n", "line 1: could not determine a constructor"},
		{"impossible date", "2024-02-30", "cannot be read as timestamp"},
		{"value that contains itself", "a: &x [*x]\n", "contains itself"},
		{"exponential aliases", bomb, "expands to more than"},
		{"deep nesting", strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "nested deeper"},
		{"bad merge", "<<: 1\n", "for merging"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v, err := yaml11.Decode([]byte(tt.text))
			if _, ok := errors.AsType[*yaml11.Error](err); !ok || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, %v; want an error with %q", v, err, tt.want)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"a: 1", "- yes\n- 1:30", "a: &x {b: *x}", "<<: [{a: 1}]", "!!int x", "? a\n: b", "2024-01-02T03:04:05Z", "%YAML 1.1\n---\na"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := yaml11.Decode(data)
		if (err == nil) == (v == nil) {
			t.Errorf("value %v with error %v", v, err)
		}
	})
}
