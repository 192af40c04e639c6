package jobdir_test

import (
	"testing"

	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/value"
)

// TestAgentInfoVectors: what results say of an agent's model, by its configured name.
func TestAgentInfoVectors(t *testing.T) {
	t.Parallel()
	v, err := value.Decode(vectors.File(t, "agents/agent-info.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range v.(value.List) {
		c := item.(*value.Object)
		name, given := vectors.Get(c, "model_name").(value.Str)
		var got *jobdir.ModelInfo
		if given {
			got = jobdir.SplitModel(string(name))
		}
		want := vectors.Object(vectors.Object(c, "agent_info"), "model_info")
		if (want == nil) != (got == nil) {
			t.Errorf("%v: model %v, want %v", name, got, want)
			continue
		}
		if want == nil {
			continue
		}
		provider, has := vectors.Get(want, "provider").(value.Str)
		if got.Name != vectors.Str(want, "name") || has != (got.Provider != nil) || has && *got.Provider != string(provider) {
			t.Errorf("%v: model %+v, want %s", name, got, value.Repr(want))
		}
	}
}
