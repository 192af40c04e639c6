package jobdir_test

import (
	"testing"

	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/value"
)

// TestResultVectors rewrites trial results byte for byte.
func TestResultVectors(t *testing.T) {
	t.Parallel()
	const dir = "harbor-jobs/trial"
	names := vectors.Dir(t, dir, "*.json")
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vector := object(t, vectors.File(t, dir+"/"+name))
			input, _ := vector.Get("input")
			want, _ := vector.Get("expected_text")
			r, err := jobdir.ParseTrialResult(value.AppendDumps(nil, input, value.DumpsOptions{}))
			if err != nil {
				t.Fatalf("reading the input: %v", err)
			}
			got := string(r.AppendJSON(nil, nil))
			if got != string(want.(value.Str)) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			again, err := jobdir.ParseTrialResult([]byte(got))
			if err != nil {
				t.Fatalf("reading back: %v", err)
			}
			if text := string(again.AppendJSON(nil, nil)); text != got {
				t.Errorf("a second round changes the text to\n%s", text)
			}
		})
	}
	t.Logf("%d cases", len(names))
}

func object(t *testing.T, data []byte) *value.Object {
	t.Helper()
	v, err := value.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	obj, ok := v.(*value.Object)
	if !ok {
		t.Fatalf("got %T, want an object", v)
	}
	return obj
}
