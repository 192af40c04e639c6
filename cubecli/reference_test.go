package cubecli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/exitcode"
)

// TestReference: the command "test" of the reference, with its lines, report
// and exit codes.
func TestReference(t *testing.T) {
	t.Parallel()
	p := newProgram(t, guess{}.cube())
	report := p.path("report.json")
	p.run("test", "--output", report).want(t, exitcode.OK, "cube test  benchmark=guess  tasks=3  failures=0\n", "  PASS  test_full_episode\n", "  JSON  "+report+"\n\nPASSED\n")
	if data, err := os.ReadFile(report); err != nil || !strings.Contains(string(data), `"cube_version": "1"`) {
		t.Errorf("the report is %s, %v", data, err)
	}
	p.run("test", "--no-reset-check").want(t, exitcode.OK, "  SKIP  test_reset_reproducibility")
	p.run("test", "--reference", "--json").want(t, exitcode.OK, `"benchmark": "guess"`, `"debug_episodes": [`)
	p.run("test", "--max-steps", "0").want(t, exitcode.Usage, "--max-steps must be at least 1")
	unsolved := guess{}.cube()
	unsolved.Agent = wrong
	newProgram(t, unsolved).run("test", "--ci").want(t, 1, "FAILED — 3/3 tasks did not reach reward 1.0")
}
