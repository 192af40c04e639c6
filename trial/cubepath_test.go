package trial_test

import (
	"testing"

	"github.com/proctor-run/proctor/trial"
)

func TestCubePath(t *testing.T) {
	t.Parallel()
	seed := int64(7)
	for _, c := range []struct {
		benchmark, id string
		seed          *int64
		want          string
	}{
		{"words", "ten", nil, "cube/words/ten"},
		{"words", "ten", &seed, "cube/words/ten@7"},
		{"words", "ten@7", nil, "cube/words/ten%407"},
		{"words", "part/ten", nil, "cube/words/part/ten"},
		{"words", "../ten", nil, "cube/words/%2E%2E/ten"},
		{"a/b", "..", nil, "cube/a%2Fb/%2E%2E"},
		{"", "", nil, "cube/%/%"},
	} {
		path := trial.CubePath(c.benchmark, c.id, c.seed)
		if path != c.want {
			t.Errorf("the path of %q in %q is %q, want %q", c.id, c.benchmark, path, c.want)
		}
		if got, ok := trial.CubeOf(path); !ok || got != c.benchmark {
			t.Errorf("%q is a task of %q (%v), want of %q", path, got, ok, c.benchmark)
		}
	}
	for _, path := range []string{"tasks/ten", "cube", "cube/words", "/cube/words/ten"} {
		if got, ok := trial.CubeOf(path); ok {
			t.Errorf("%q is a task of cube %q", path, got)
		}
	}
}
