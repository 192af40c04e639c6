package cubecli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/exitcode"
)

// TestRefused: what a cube would ignore is refused, with the reason, before
// anything runs.
func TestRefused(t *testing.T) {
	t.Parallel()
	p := newProgram(t, guess{}.cube()).withSandboxes()
	for flag, why := range map[string]string{
		"-e host": "--env is not supported", "--runtime native": "--runtime is not supported",
		"--timeout-multiplier 2":          "no time limits of their own",
		"--agent-timeout-multiplier 2":    "no time limits of their own",
		"--verifier-timeout-multiplier 2": "no time limits of their own",
	} {
		p.run(append([]string{"run", "-o", p.path("jobs")}, strings.Fields(flag)...)...).want(t, exitcode.Usage, why)
	}
	unsolved := guess{}.cube()
	unsolved.Agent = nil
	q := newProgram(t, unsolved)
	q.job("j").want(t, exitcode.Usage, `cube "guess" has no debug agent, which agent oracle plays`)
	q.job("nop", "-a", "nop").want(t, exitcode.OK)
	for _, dir := range []string{p.path("jobs"), q.path("jobs", "j")} {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s was begun", dir)
		}
	}
	limits := p.path("limits.json")
	if err := os.WriteFile(limits, []byte(`{"agents": [{"name": "oracle", "override_timeout_sec": 60}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	p.job("limited", "-c", limits, "--agent-timeout-multiplier", "2").want(t, exitcode.OK, "Mean 1.000")
}
