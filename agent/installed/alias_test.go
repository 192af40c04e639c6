package installed_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/agent/installed"
	"github.com/proctor-run/proctor/agent/logs"
)

// TestModelsAreNamed: what a program knows by the alias of its file has the name of the
// configuration in the trajectory, and any other model its own.
func TestModelsAreNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const said = `{"type":"message_end","message":{"role":"assistant","provider":"proctor","model":"a/m","content":[{"type":"text","text":"x"}]}}` + "\n"
	if err := os.WriteFile(filepath.Join(dir, "pi.txt"), []byte(said), 0o600); err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]string{"local/a/m": "local/a/m", "other/m": "proctor/a/m", "": "proctor/a/m"} {
		made, err := installed.Agents().ReadLogs("pi", logs.Input{Dir: dir, Model: model})
		if err != nil {
			t.Fatal(err)
		}
		agent, step := made.Trajectory.Agent.ModelName, made.Trajectory.Steps[0].ModelName
		if agent == nil || step == nil || *agent != want || *step != want {
			t.Errorf("model %q: it is called %v and %v, want %s", model, agent, step, want)
		}
	}
}
