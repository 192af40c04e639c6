package toml_test

import (
	"testing"

	"github.com/proctor-run/proctor/internal/toml"
	"github.com/proctor-run/proctor/value"
)

// TestLines: keys, tables and elements of arrays of tables have the lines on which their
// statements begin, and what is not there that of what it would be in.
func TestLines(t *testing.T) {
	t.Parallel()
	const text = "# first\r\nname = \"x\"\n\n[agent]\ntimeout = 1\nlist = [\n  1,\n  {a = 1},\n]\n" + // to line 9
		"[[steps]]\nname = \"\"\"\none\"\"\"\n[steps.agent]\nuser.name = 2\n[[steps]]\n  [steps.\"a.b\"]\n  x = 1\n" + // to line 17
		"[[steps.\"a.b\".deep]]\ny = 1\n[a.b]\n[a]\nz = 3\n"
	_, lines, err := toml.DecodeLines(text)
	if err != nil {
		t.Fatal(err)
	}
	for line, places := range map[int][][]any{
		0: {{}, {"absent"}, {"absent", "key"}, {1.5}},
		2: {{"name"}, {"name", "below"}},
		4: {{"agent"}, {"agent", "absent"}}, 5: {{"agent", "timeout"}, {"agent", "timeout", "float"}},
		6:  {{"agent", "list"}, {"agent", "list", 1, "a"}},
		10: {{"steps"}, {"steps", 0}, {"steps", 9}, {"steps", 0, "absent"}}, 11: {{"steps", 0, "name"}},
		13: {{"steps", 0, "agent"}}, 14: {{"steps", 0, "agent", "user", "name"}, {"steps", 0, "agent", "user"}},
		15: {{"steps", 1}, {"steps", 1, "name"}}, 16: {{"steps", 1, "a.b"}}, 17: {{"steps", 1, "a.b", "x"}},
		18: {{"steps", 1, "a.b", "deep"}, {"steps", 1, "a.b", "deep", 0}}, 19: {{"steps", 1, "a.b", "deep", 0, "y"}},
		20: {{"a"}, {"a", "b"}}, 22: {{"a", "z"}},
	} {
		for _, place := range places {
			if got := lines.Of(place); got != line {
				t.Errorf("%v: line %d, want %d", place, got, line)
			}
		}
	}
	if (toml.Lines{}).Of([]any{"a"}) != 0 {
		t.Error("no lines have one")
	}
	if _, _, err := toml.DecodeLines("a ="); err == nil {
		t.Error("what is no TOML has lines")
	}
}

// FuzzLines: with lines a document reads as without them, and each of its keys has one.
func FuzzLines(f *testing.F) {
	for _, text := range []string{"a.b = 1\n[c]\nd = [{x = 1}]\n[[e]]\n[[e.f]]\ng = 1", "\n\n\"\\u0000\" = 1\n[[a]]\n", "[a]\n[a.b]\n[[a.c]]\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, wantErr := toml.Decode(text)
		got, lines, err := toml.DecodeLines(text)
		if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
			t.Fatalf("%v, want %v", err, wantErr)
		}
		if err != nil {
			return
		}
		if value.Repr(got) != value.Repr(want) {
			t.Fatalf("%s, want %s", value.Repr(got), value.Repr(want))
		}
		for key := range got.All() {
			if lines.Of([]any{key}) < 1 {
				t.Errorf("%q has no line", key)
			}
		}
	})
}
