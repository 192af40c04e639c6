package main

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/value"
)

// The agent that has an older process start its survivor.
//
//go:embed testdata/hostile/older.sh
var olderAgent string

// patientTests write that the task is not solved, and give time to forge that. They use no
// program.
const patientTests = "#!/bin/bash\necho 0 >/logs/verifier/reward.txt\nexec 3<> <(:)\nread -r -t 2 -u 3\n:\n"

// loops is what has something run that is older than an agent, and calls sleep.
const loops = "while :; do sleep 0.2; done"

// olderProcesses are the ways in which a task has processes from before the agent.
var olderProcesses = []struct {
	name   string
	docker bool // on Docker only
	toml   string
	files  map[string]string
}{
	{"an entrypoint", true, "", map[string]string{
		"environment/Dockerfile": "FROM debian:bookworm-slim\nENTRYPOINT [\"sh\",\"-c\",\"(" + loops + ") & exec \\\"$@\\\"\",\"sh\"]\nWORKDIR /app\n",
	}},
	{"a compose service", true, "", map[string]string{
		"environment/docker-compose.yaml": "services:\n  main:\n    init: false\n    command: [sh, -c, '" + loops + "']\n",
	}},
	{"a health check's daemon", false, "[environment.healthcheck]\ncommand = \"setsid sh -c '" + loops + "' >/dev/null 2>&1 &\"\n", nil},
}

// TestOlderProcesses: what a process from before the agent starts for it does not go unseen,
// and nothing of it is there for a sealed verifier.
func TestOlderProcesses(t *testing.T) {
	t.Parallel()
	for _, e := range hostileEnvironments() {
		for _, o := range olderProcesses {
			for _, sealed := range []bool{false, true} {
				name := e.name + "/" + o.name
				if sealed {
					name += ", sealed"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					if o.docker && e.name != sandbox.BackendDocker {
						t.Skip("nothing but Docker runs this without an image in a mirror")
					}
					if !o.docker && !sealed {
						e.oneIsEnough(t)
					}
					b, res, notes := prepared(t, "started", func(seconds int) *hostileBench {
						b := newHostileBench(t, e, o.toml)
						b.called(fmt.Sprintf("older__%07d", rand.N(10_000_000)))
						b.cfg.Agent.OverrideTimeoutSec = new(float64(seconds))
						writeFiles(t, *b.cfg.Task.Path, map[string]string{"tests/test.sh": patientTests})
						writeFiles(t, *b.cfg.Task.Path, o.files)
						b.cfg.Agent.Kwargs.Set("run", value.Str(olderAgent))
						b.SealedVerifier = sealed
						return b
					})
					if sealed {
						checkSealed(t, b, res, notes)
						return
					}
					checkUnsealed(t, res, notes)
				})
			}
		}
	}
}

// checkUnsealed: what the older process has started is seen, and not called gone. With gVisor
// the older process itself can have ended with it: what is stopped in its process group, in
// order to be killed, hangs up the group.
func checkUnsealed(t *testing.T, res *jobdir.TrialResult, notes jobdir.Notes) {
	t.Helper()
	left, k := notes.AgentLeft, notes.AgentKilled
	suspected := slices.ContainsFunc(notes.Verification.Suspicions, func(s string) bool { return strings.Contains(s, "running") })
	if seen := left != nil && suspected && k != nil && !k.ProvenGone && k.Error != ""; seen {
		return
	}
	gone := notes.Runtime == "gvisor" && left == nil && k != nil && k.ProvenGone
	if got := outcomeText(jobdir.RecordOf(res)); !gone || got != `{"reward":0.0} AgentTimeoutError` {
		t.Errorf("outcome %s: killed %+v, left %+v, evidence %+v", got, k, left, notes.Verification)
	}
}

// checkSealed: the tests' own reward counts, and what is older than the agent was ended too,
// of which a warning tells.
func checkSealed(t *testing.T, b *hostileBench, res *jobdir.TrialResult, notes jobdir.Notes) {
	t.Helper()
	if got := outcomeText(jobdir.RecordOf(res)); got != `{"reward":0.0} AgentTimeoutError` {
		t.Errorf("outcome %s, want the tests' own reward", got)
	}
	if reward := strings.TrimSpace(b.file(t, "verifier/reward.txt")); reward != "0" {
		t.Errorf("the reward file says %q", reward)
	}
	if k := notes.AgentKilled; k == nil || !k.ProvenGone || k.Reason != "sealed verifier" {
		t.Errorf("killed: %+v", k)
	}
	if !slices.ContainsFunc(notes.Warnings, func(w string) bool { return strings.Contains(w, "is not started again") }) {
		t.Errorf("warnings: %q", notes.Warnings)
	}
}
