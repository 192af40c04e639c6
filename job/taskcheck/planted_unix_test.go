//go:build unix

package taskcheck_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/planted"
	"github.com/proctor-run/proctor/job/taskcheck"
	"github.com/proctor-run/proctor/jobdir"
)

// TestGatherOfNoFile: what an agent left in the place of its output is not waited for,
// and of a long one the beginning counts.
func TestGatherOfNoFile(t *testing.T) {
	t.Parallel()
	for _, kind := range planted.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			kind.Put(t, filepath.Join(dir, "agent", "command.txt"))
			got, err := taskcheck.Gather(dir, taskcheck.Role{Kind: taskcheck.KindChannel}, &jobdir.TrialResult{TrialName: "t"})
			if kind == planted.Sparse {
				if err != nil || len(got.Output) != 1<<20 {
					t.Errorf("%d bytes, %v", len(got.Output), err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "agent/command.txt") {
				t.Errorf("got %v", err)
			}
		})
	}
}
