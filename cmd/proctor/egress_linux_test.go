package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/egress"
	"github.com/proctor-run/proctor/sandbox/sandboxtest"
	"github.com/proctor-run/proctor/value"
)

// fetching is a web client of bash alone. fetch asks the proxy that it was told
// of, direct asks nobody.
const fetching = `fetch() {
	proxy=${http_proxy#http://}
	exec 3<>"/dev/tcp/${proxy%:*}/${proxy#*:}" && printf 'GET http://%s/ HTTP/1.0\r\n\r\n' "$1" >&3 && cat <&3
}
direct() {
	(exec 3<>"/dev/tcp/$1") 2>/dev/null && echo connected || echo unreachable
}
interfaces() {
	tail -n +3 /proc/net/dev | cut -d: -f1 | grep -cvw lo; true
}
`

// egressBench runs a task with networks through a trial.Runner whose sandboxes
// find good.test and evil.test outside.
func egressBench(t *testing.T, e environment, toml, agentScript, tests string) *hostileBench {
	t.Helper()
	world := &sandboxtest.World{}
	world.Serve(t, "good.test")
	world.Serve(t, "evil.test")
	b := newHostileBench(t, e, toml, func(o *backendOptions) { o.Egress = world.Upstream() })
	writeFiles(t, *b.cfg.Task.Path, map[string]string{"tests/test.sh": "#!/bin/bash\n" + fetching + tests})
	b.cfg.Agent.Kwargs = value.NewObject(1)
	b.cfg.Agent.Kwargs.Set("run", value.Str(fetching+agentScript))
	return b
}

// egressLines reads the log of the egress proxy.
func egressLines(t *testing.T, b *hostileBench) []egress.Line {
	t.Helper()
	var all []egress.Line
	for text := range strings.Lines(b.file(t, jobdir.EgressLog)) {
		var l egress.Line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Errorf("line %q: %v", text, err)
		}
		all = append(all, l)
	}
	return all
}

func TestTaskWithAnAllowList(t *testing.T) {
	t.Parallel()
	for _, e := range environments() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			b := egressBench(t, e, "[environment]\nnetwork_mode = \"allowlist\"\nallowed_hosts = [\"good.test\"]\n", `
				fetch good.test > /logs/artifacts/good
				fetch evil.test > /logs/artifacts/evil
				unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
				{ direct 192.0.2.1/80; interfaces; } > /logs/artifacts/direct`, `
				fetch good.test | grep -q 'hello from good.test' && echo 1 > /logs/verifier/reward.txt`)
			res, _ := b.run(t)
			if got := outcomeText(jobdir.RecordOf(res)); got != `{"reward":1.0}` {
				t.Errorf("outcome %s", got)
			}
			if got := b.file(t, "artifacts/good"); !strings.HasPrefix(got, "HTTP/1.1 200 OK") || !strings.Contains(got, "hello from good.test") {
				t.Errorf("the allowed host: %q", got)
			}
			if got := b.file(t, "artifacts/evil"); !strings.HasPrefix(got, "HTTP/1.1 403 ") || !strings.Contains(got, `"evil.test" is denied: not in allowed_hosts`) {
				t.Errorf("another host: %q", got)
			}
			if got := b.file(t, "artifacts/direct"); got != "unreachable\n0\n" {
				t.Errorf("without the proxy: %q", got)
			}
			var got []string
			for _, l := range egressLines(t, b) {
				if l.Time.IsZero() || l.Port != 80 || l.Allowed != (l.BytesUp > 0 && l.BytesDown > 0) {
					t.Errorf("line %+v", l)
				}
				// The last connection may be open still when the sandbox ends.
				reason, _, _ := strings.Cut(l.Reason, "; closed: ")
				got = append(got, l.Host+": "+reason)
			}
			slices.Sort(got)
			if want := []string{"evil.test: not in allowed_hosts", "good.test: in allowed_hosts", "good.test: in allowed_hosts"}; !slices.Equal(got, want) {
				t.Errorf("the log says %q, want %q", got, want)
			}
		})
	}
}

func TestTaskWhosePhasesHaveNetworksOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, e := range environments() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			b := egressBench(t, e, "[agent]\nnetwork_mode = \"allowlist\"\nallowed_hosts = [\"good.test\"]\n[verifier]\nnetwork_mode = \"no-network\"\n", `
				fetch good.test > /logs/artifacts/good
				fetch evil.test > /logs/artifacts/evil
				direct 192.0.2.1/80 > /logs/artifacts/direct
				interfaces > /logs/artifacts/interfaces`, `
				fetch good.test > /logs/verifier/good
				direct 192.0.2.1/80 > /logs/verifier/direct
				interfaces > /logs/verifier/interfaces
				grep -q 'HTTP/1.1 403' /logs/verifier/good && echo 1 > /logs/verifier/reward.txt`)
			res, notes := b.run(t)
			if got := outcomeText(jobdir.RecordOf(res)); got != `{"reward":1.0}` {
				t.Errorf("outcome %s", got)
			}
			interfaces := "1\n" // a device stays, whose other end refuses everything
			if e.name == sandbox.BackendDocker {
				interfaces = "0\n"
			}
			for name, want := range map[string]string{
				"artifacts/good": "hello from good.test", "artifacts/evil": "not in allowed_hosts", "artifacts/interfaces": interfaces,
				"verifier/good": "network_mode is no-network", "verifier/interfaces": interfaces,
				"artifacts/direct": "unreachable", "verifier/direct": "unreachable",
			} {
				if got := b.file(t, name); !strings.Contains(got, want) {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if notes.AgentLeft != nil {
				t.Errorf("the agent is said to have left %+v", notes.AgentLeft)
			}
			if n := len(egressLines(t, b)); n != 3 {
				t.Errorf("%d lines in the log, want 3: %+v", n, egressLines(t, b))
			}
		})
	}
}

// TestSealedVerifierKeepsItsNetwork: what ends the agent's processes before the
// tests spares the relay.
func TestSealedVerifierKeepsItsNetwork(t *testing.T) {
	t.Parallel()
	for _, e := range hostileEnvironments() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			b := egressBench(t, e, "[verifier]\nnetwork_mode = \"allowlist\"\nallowed_hosts = [\"good.test\"]\n",
				`(setsid sleep 86400 >/dev/null 2>&1 &)`, `fetch good.test | grep -q 'hello from good.test' && echo 1 > /logs/verifier/reward.txt`)
			b.SealedVerifier = true
			res, _ := b.run(t)
			if got := outcomeText(jobdir.RecordOf(res)); got != `{"reward":1.0}` {
				t.Errorf("outcome %s", got)
			}
		})
	}
}
