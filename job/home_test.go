package job_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// TestExtraInstructionsBelowHome: a path that begins with ~ is pinned and read
// below the home directory of whoever runs the job.
func TestExtraInstructionsBelowHome(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "more.md"), []byte("More."), 0o644); err != nil {
		t.Fatal(err)
	}
	h := newHarness(t, writeDataset(t, "a-task"), fake.Config{Rules: []fake.Rule{grant("1")}})
	h.cfg.ExtraInstructionPaths = []string{"~/more.md"}
	lookup := func(name string) (string, bool) { return home, name == "HOME" }
	h.runner.Trials.Lookup = lookup
	p, err := job.Prepare(h.cfg, job.PrepareOptions{Now: time.Now(), Lookup: lookup, Home: home, Random: rand.IntN, Invocation: []string{"proctor", "run"}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.runner.Run(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if n := out.Result.Stats.NErroredTrials; n != 0 {
		t.Errorf("%d trials failed", n)
	}
	lock, err := os.ReadFile(filepath.Join(h.dir(), "lock.json"))
	if err != nil || !strings.Contains(string(lock), `"path": "~/more.md"`) {
		t.Errorf("lock: %v\n%s", err, lock)
	}
}
