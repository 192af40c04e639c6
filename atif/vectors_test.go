package atif

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/value"
)

// TestATIF runs the validation cases of the reference, one per file.
func TestATIF(t *testing.T) {
	t.Parallel()
	for _, file := range vectors.Dir(t, "atif", "*.json") {
		t.Run(strings.TrimSuffix(file, ".json"), func(t *testing.T) {
			t.Parallel()
			c, ok := decoded(t, vectors.File(t, "atif/"+file)).(*value.Object)
			if !ok || !c.Has("valid") {
				t.Fatalf("%s holds no case", file)
			}
			got, err := Decode(vectors.Get(c, "trajectory"))
			if vectors.Bool(c, "valid") {
				checkNormalized(t, got, err, vectors.Object(c, "normalized"))
				return
			}
			checkProblems(t, err, c)
		})
	}
}

func checkNormalized(t *testing.T, got *Trajectory, err error, want *value.Object) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if want == nil {
		t.Fatal("the case has no normalized form")
	}
	if diff := cmp.Diff(dump(want), dump(got.Object())); diff != "" {
		t.Errorf("written again (-want +got):\n%s", diff)
	}
}

func checkProblems(t *testing.T, err error, c *value.Object) {
	t.Helper()
	bad, ok := errors.AsType[*Invalid](err)
	if !ok {
		t.Fatalf("got %v, want problems", err)
	}
	var lines, locations, want []string
	for _, p := range bad.Problems {
		lines, locations = append(lines, p.String()), append(locations, p.Location)
	}
	for _, l := range vectors.List(c, "error_locations") {
		want = append(want, string(l.(value.Str)))
	}
	if len(want) == 0 {
		t.Fatal("the case names no location")
	}
	if diff := cmp.Diff(want, locations); diff != "" {
		t.Errorf("locations (-want +got):\n%s", diff)
	}
	if text := vectors.Str(c, "error_contains"); text == "" || !strings.Contains(strings.Join(lines, "\n"), text) {
		t.Errorf("%q is not among %q", text, lines)
	}
}

// TestFormatJSON runs the compacting writer.
func TestFormatJSON(t *testing.T) {
	t.Parallel()
	cases, _ := decoded(t, vectors.File(t, "atif-format/format-json.json")).(value.List)
	if len(cases) == 0 {
		t.Fatal("there is no case in it")
	}
	for _, item := range cases {
		c := item.(*value.Object)
		t.Run(vectors.Str(c, "name"), func(t *testing.T) {
			t.Parallel()
			input := vectors.Get(c, "input")
			if vectors.Str(c, "input_note") == "a = [1.0, NaN]" {
				o := &value.Object{}
				o.Set("a", value.List{value.Float(1), value.Float(math.NaN())})
				input = o
			} else if !c.Has("input") {
				t.Fatalf("the input %q is not known", vectors.Str(c, "input_note"))
			}
			if diff := cmp.Diff(vectors.Str(c, "output"), string(appendDocument(nil, input, Compact))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func decoded(t *testing.T, data []byte) value.Value {
	t.Helper()
	v, err := value.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func dump(v value.Value) string {
	return string(value.AppendDumps(nil, v, value.DumpsOptions{Indent: 1}))
}
