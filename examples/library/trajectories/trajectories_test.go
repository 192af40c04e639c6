package trajectories

import (
	"errors"
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

func TestPrice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, _, err := Price(dir, "m", 1, 2); err == nil {
		t.Error("no session is no error")
	}
	session := filepath.Join(dir, "sessions", "2026", "01", "01")
	const log = `{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"text":"hi"}]}}
{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":1000000,"output_tokens":500000}}}}`
	if err := errors.Join(os.MkdirAll(session, 0o750), os.WriteFile(filepath.Join(session, "rollout.jsonl"), []byte(log), 0o600)); err != nil {
		t.Fatal(err)
	}
	traj, usd, err := Price(dir, "m", 1, 2)
	if err != nil || usd != 2 || traj.Steps[0].Message.Text != "hi" {
		t.Errorf("%v, %v, %v", traj, usd, err)
	}
}
