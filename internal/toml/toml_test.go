package toml_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/toml"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"empty", "", "{}"},
		{"order", "b = 1\na = 2 # note\n", "{'b': 1, 'a': 2}"},
		{"dotted keys and headers", "a.b.c = 1\n[x.y]\nz = 1\n[x]\nq.r = 2\n", "{'a': {'b': {'c': 1}}, 'x': {'y': {'z': 1}, 'q': {'r': 2}}}"},
		{"arrays of tables", "[[a]]\nx = 1\n[[a]]\n[a.b]\ny = 2\n", "{'a': [{'x': 1}, {'b': {'y': 2}}]}"},
		{"numbers", "n = [0x1F, 0o17, 0b101, 1_000, -0, 1e5, -1.5e-3, +inf, 99999999999999999999]",
			"{'n': [31, 15, 5, 1000, 0, 100000.0, -0.0015, inf, 99999999999999999999]}"},
		{"strings", `a = "\t\u00e9\U0001F600" ` + "\nb = '''\nit's\\n'''\nc = \"\"\"x\\\n   y\"\"\"\"\"\n",
			`{'a': '\té😀', 'b': "it's\\n", 'c': 'xy""'}`},
		{"dates", "a = 1979-05-27\nb = 1979-05-27T07:32:00.5Z\nc = 07:32:00\nd = 1979-05-27 07:32:00-07:30\n",
			"{'a': '1979-05-27', 'b': '1979-05-27T07:32:00.500000Z', 'c': '07:32:00', 'd': '1979-05-27T07:32:00-07:30'}"},
		{"inline tables", "a = {b = 1, c.d = [1, {}]}", "{'a': {'b': 1, 'c': {'d': [1, {}]}}}"},
		{"array over lines", "a = [ # one\n 1,\n 2, # two\n]\n", "{'a': [1, 2]}"},
		{"CR LF", "a = 1\r\nb = 2\r\n", "{'a': 1, 'b': 2}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			doc, err := toml.Decode(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			plain, _, err := schema.Validate(value.Value(doc), schema.Object)
			if err != nil {
				t.Fatal(err)
			}
			if got := value.Repr(plain); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// The texts and places are those that Python 3.11's tomllib gives.
func TestErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"[agent\n":                  "Expected ']' at the end of a table declaration (at line 1, column 7)",
		"a=1\na=2\n":                "Cannot overwrite a value (at line 2, column 4)",
		"\ufeff[agent]\n":           "Invalid statement (at line 1, column 1)",
		"é = 1":                     "Invalid statement (at line 1, column 1)",
		"a = 1 b = 2":               "Expected newline or end of document after a statement (at line 1, column 7)",
		"a =":                       "Invalid value (at end of document)",
		"a = 08":                    "Expected newline or end of document after a statement (at line 1, column 6)",
		"[x]\n[x]\n":                "Cannot declare ('x',) twice (at line 2, column 3)",
		"a = {b = 1}\n[a.c]\n":      "Cannot declare ('a', 'c') twice (at line 2, column 5)",
		"a = []\n[[a]]\n":           "Cannot mutate immutable namespace ('a',) (at line 2, column 4)",
		"[a.b]\n[a]\nb.c = 1\n":     "Cannot redefine namespace ('a', 'b') (at line 3, column 8)",
		"a = {b = 1, b = 2}":        "Duplicate inline table key 'b' (at line 1, column 18)",
		"a = {b = 1,}":              "Invalid initial character for a key part (at line 1, column 12)",
		"a = [1 2]":                 "Unclosed array (at line 1, column 8)",
		"a = \"x":                   "Unterminated string (at end of document)",
		"é.\"ü\" = 1":               "Invalid statement (at line 1, column 1)",
		"\"é\" = \"\\q\"":           `Unescaped '\' in a string (at line 1, column 10)`,
		"a = \"\\ud800\"":           "Escaped character is not a Unicode scalar value (at line 1, column 12)",
		"a = 'x\ty\x01'":            "Found invalid character '\\x01' (at line 1, column 9)",
		"a = 2023-02-30":            "Invalid date or datetime (at line 1, column 5)",
		"# \x7f":                    "Found invalid character '\\x7f' (at line 1, column 3)",
		"a.b = 1\n[a]\nc = 1\n":     "Cannot declare ('a',) twice (at line 2, column 3)",
		"a = 1\n\n  [b\n":           "Expected ']' at the end of a table declaration (at line 3, column 5)",
		"k = 1\nlonger key = 2\n":   "Expected '=' after a key in a key/value pair (at line 2, column 8)",
		"a = {x = {y = 1}, x.z=2 }": "Cannot mutate immutable namespace ('x', 'z') (at line 1, column 24)",
	}
	for text, want := range tests {
		_, err := toml.Decode(text)
		if tomlErr, ok := errors.AsType[*toml.Error](err); !ok || tomlErr.Error() != want {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
}

// People look for an error where its statement begins if it has no place of its own.
func TestErrorPlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a =":                                  "line 1",
		"a = 1\n\n  b =":                       "line 3",
		"a = 1\nb = [\n1,\n2\nc = 3\n\n":       "line 5, column 1",
		"a = 1\nb = [\n1,\n2,\n\n":             "line 2",
		"\n\"a\" = \"\"\"x\ny\n[table]\nc=1":   "line 2",
		"# x\n\n[table":                        "line 3",
		"[[a]]\n[a.b]\nc = 1\r\n\r\nd = '\r\n": "line 5",
		"a = 1\nb = x":                         "line 2, column 5",
	} {
		_, err := toml.Decode(text)
		if syntax, ok := errors.AsType[*toml.Error](err); !ok || syntax.Place() != want {
			t.Errorf("%q: %v, want a place %q", text, err, want)
		}
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	_, err := toml.Decode("a = " + strings.Repeat("9", value.MaxIntDigits+1))
	if !errors.Is(err, value.ValueError) {
		t.Errorf("an int with too many digits: %v", err)
	}
	_, err = toml.Decode("a = " + strings.Repeat("[", 100_000))
	if !errors.Is(err, value.RecursionError) {
		t.Errorf("deep nesting: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"a = 1", "[a.b]\nc.d = {e = [1, 2.0]}", "[[a]]\n[a.b]", `s = """x\ y"""`, "d = 1979-05-27T07:32:00Z", "a = '"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := toml.Decode(text)
		if (err == nil) == (doc == nil) {
			t.Errorf("document %v with error %v", doc, err)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	text := strings.Repeat("[[steps]]\nname = \"a\"\n[steps.env]\nKEY = \"value\" # note\nlist = [1, 2, 3]\n", 100)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := toml.Decode(text); err != nil {
			b.Fatal(err)
		}
	}
}
