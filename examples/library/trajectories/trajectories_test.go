package trajectories

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/atif"
)

func TestTrajectories(t *testing.T) {
	t.Parallel()
	trial := filepath.Join(t.TempDir(), "hello__1")
	if err := os.MkdirAll(filepath.Join(trial, "agent"), 0o750); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(trial, "agent", "trajectory.json")
	for style, answer := range map[atif.Style]string{atif.Compact: `"Sch\u00f6n."`, atif.ASCII: `"Sch\u00f6n."`, atif.Unicode: `"Schön."`} {
		if err := Lookup(file, style, "Wie geht's?", "geht", []string{"gut", "schlecht"}, "Schön.", 3); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(data), `"message": `+answer) {
			t.Errorf("%s, %v", data, err)
		}
	}
	used, err := Tools(file)
	if err != nil || used["search"] != 1 {
		t.Errorf("%v, %v", used, err)
	}
	result := `{"trial_name":"hello__1","config":{"agent":{"name":"answerer"}},"verifier_result":{"rewards":{"reward":1}}}`
	if err := os.WriteFile(filepath.Join(trial, "result.json"), []byte(result), 0o600); err != nil {
		t.Fatal(err)
	}
	rows, err := Solved(filepath.Dir(trial))
	if err != nil || len(rows) != 1 {
		t.Fatalf("%v, %v", rows, err)
	}
	if r, _ := rows[0].Get("result"); r == nil {
		t.Error("the row has no result")
	}
	if err := os.WriteFile(file, []byte(`{"steps":[{"tool_calls":[]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Tools(file); err == nil || !strings.Contains(err.Error(), "trajectory.agent: required field is missing") {
		t.Errorf("got %v", err)
	}
}
