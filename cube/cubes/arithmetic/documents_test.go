package arithmetic_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubes/arithmetic"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/value"
)

// TestDocumentsOfARecordedSession reads every typed object of the replies of the
// reference's arithmetic server and writes it again, the same.
func TestDocumentsOfARecordedSession(t *testing.T) {
	t.Parallel()
	reg := cube.NewRegistry(cube.Options{})
	if err := arithmetic.Register(reg); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for line := range bytes.Lines(vectors.File(t, "cube-server/arithmetic-session.jsonl")) {
		v, err := value.Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		c := v.(*value.Object)
		reply, err := value.DecodeText(vectors.Str(c, "response"))
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range typedObjects(reply) {
			name := vectors.Str(doc, "_type")
			seen[name]++
			want := value.AppendPydantic(nil, doc, 0)
			typed, err := reg.LoadAs(name, want)
			if err != nil {
				t.Errorf("%s: %s: %v", vectors.Str(c, "name"), name, err)
				continue
			}
			got, err := cube.Marshal(typed)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", vectors.Str(c, "name"), name, diff)
			}
		}
	}
	t.Logf("documents: %v", seen)
	for _, name := range []string{"arithmetic_cube.task.ArithmeticTaskMetadata", "arithmetic_cube.task.ArithmeticTaskConfig", "cube.core.EnvironmentOutput"} {
		if seen[name] == 0 {
			t.Errorf("there is no %s", name)
		}
	}
}

// typedObjects returns the outermost typed objects in a value.
func typedObjects(v value.Value) (out []*value.Object) {
	switch v := v.(type) {
	case value.List:
		for _, item := range v {
			out = append(out, typedObjects(item)...)
		}
	case *value.Object:
		if v.Has("_type") {
			return []*value.Object{v}
		}
		for _, item := range v.All() {
			out = append(out, typedObjects(item)...)
		}
	}
	return out
}
