package cube_test

import (
	"testing"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/internal/democube"
)

// TestActionSetsAreTheCallersOwn: what an agent does with a schema changes no
// other turn's.
func TestActionSetsAreTheCallersOwn(t *testing.T) {
	t.Parallel()
	cfg := &democube.TaskConfig{Target: 3}
	cfg.Metadata = democube.NewMetadata("task-1")
	task, err := cfg.Build(t.Context(), cube.RuntimeContext{}, nil, &democube.Task{Target: 3}, democube.NewToolConfig())
	if err != nil {
		t.Fatal(err)
	}
	first := task.ActionSet()
	for i := range first {
		first[i].Name = "changed"
		first[i].Parameters.Set("properties", cube.Str("changed"))
	}
	for _, a := range task.ActionSet() {
		if v, _ := a.Parameters.Get("properties"); a.Name == "changed" || v == cube.Value(cube.Str("changed")) {
			t.Errorf("action %s has the properties %v", a.Name, v)
		}
	}
	if err := task.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
