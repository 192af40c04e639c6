package job_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/sandbox/fake"
)

// A job's trials have the abilities of the backend's sandboxes.
func TestTrialsSwitchNetworks(t *testing.T) {
	t.Parallel()
	dataset := writeDataset(t, "a-task")
	if err := os.WriteFile(filepath.Join(dataset, "a-task", "task.toml"), []byte("[verifier]\nnetwork_mode = \"no-network\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	h := newHarness(t, dataset, fake.Config{Rules: []fake.Rule{grant("1")}})
	out := h.run(t)
	if r := out.Records[0]; r.ExceptionType != "" || r.Rewards == nil {
		t.Errorf("got %+v", r)
	}
	switched := 0
	for _, c := range h.backend.Calls() {
		if c.Op == fake.OpNetwork {
			switched++
		}
	}
	if switched == 0 {
		t.Error("the network was not changed")
	}
}
