package main

import (
	_ "embed"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/value"
)

// The agent that replaces the shell, and every other program that could be asked
// for its processes.
//
//go:embed testdata/hostile/replaces.sh
var replacingAgent string

// failingTests give the agent time to forge what they have written.
const failingTests = "#!/bin/bash\necho 0 >/logs/verifier/reward.txt\n/bin/sleep 1\n"

// TestReplacedPrograms: no proof rests on programs that the agent can change. Its
// forged reward does not count, or it can be seen that it was there to write it.
func TestReplacedPrograms(t *testing.T) {
	t.Parallel()
	for _, e := range hostileEnvironments() {
		for _, c := range []struct {
			name         string
			ends, sealed bool
		}{
			{"at its deadline", false, false},
			{"at its deadline, sealed", false, true},
			{"ends by itself, sealed", true, true},
			{"ends by itself", true, false},
		} {
			t.Run(e.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				if e.name != sandbox.BackendDocker {
					e.oneIsEnough(t)
				}
				b, res, notes := prepared(t, "replaced", func(seconds int) *hostileBench {
					b := newHostileBench(t, e, "")
					if c.ends {
						b.cfg.Agent.Env = jobdir.EnvOf("ENDS", "yes")
						seconds = 600 // it is not waited for
					}
					b.cfg.Agent.OverrideTimeoutSec = new(float64(seconds))
					writeFiles(t, *b.cfg.Task.Path, map[string]string{"tests/test.sh": failingTests})
					b.cfg.Agent.Kwargs.Set("run", value.Str(replacingAgent))
					b.SealedVerifier = c.sealed
					return b
				})
				got := outcomeText(jobdir.RecordOf(res))
				switch {
				case c.ends && !c.sealed: // it may stay, and everybody sees that it did
					if notes.AgentLeft == nil || notes.AgentLeft.Processes == 0 || !slices.ContainsFunc(notes.Verification.Suspicions, func(s string) bool { return strings.Contains(s, "running") }) {
						t.Errorf("outcome %s: left %+v, evidence %+v", got, notes.AgentLeft, notes.Verification)
					}
				case !strings.HasPrefix(got, `{"reward":0.0}`):
					t.Errorf("outcome %s, want the tests' own reward", got)
				case notes.AgentKilled == nil || !notes.AgentKilled.ProvenGone:
					t.Errorf("killed: %+v", notes.AgentKilled)
				}
				if reward := strings.TrimSpace(b.file(t, filepath.Join("verifier", "reward.txt"))); reward != "0" && (!c.ends || c.sealed) {
					t.Errorf("the reward file says %q", reward)
				}
			})
		}
	}
}
