package trial_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/egress"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// networks tells what happened to the network, and the policy under which the
// agent and the tests ran, in order.
func networks(b *bench) []string {
	var all []string
	policy := func(n sandbox.Network) string {
		return strings.TrimSpace(string(n.Mode) + " " + strings.Join(n.Hosts, " "))
	}
	for _, c := range b.backend.Calls() {
		switch {
		case c.Op == fake.OpCreate:
			all = append(all, fmt.Sprintf("create %s switchable=%v log=%v", policy(c.Spec.Network), c.Spec.Network.Switchable, c.Spec.Network.Log != nil))
		case c.Op == fake.OpNetwork:
			all = append(all, "set "+policy(c.Network))
		case c.Op == fake.OpMark:
			all = append(all, "mark")
		case c.Op == fake.OpKillTree:
			all = append(all, "kill")
		case c.Op == fake.OpExec && strings.Contains(c.Command.Shell, "solve.sh") && !strings.Contains(c.Command.Shell, "chmod"):
			all = append(all, "agent under "+policy(c.Network))
		case c.Op == fake.OpExec && strings.Contains(c.Command.Shell, "(/tests/test.sh"):
			all = append(all, "tests under "+policy(c.Network))
		}
	}
	return slices.Compact(all)
}

func TestPhasesHaveTheirNetworks(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		toml string
		want []string
		log  bool
	}{
		"all the same": {
			"[environment]\nnetwork_mode = \"no-network\"\n[agent]\nnetwork_mode = \"no-network\"\n",
			[]string{"create no-network switchable=false log=false", "mark", "agent under no-network", "tests under no-network"}, false,
		},
		"an allow list": {
			"[environment]\nnetwork_mode = \"allowlist\"\nallowed_hosts = [\"A.com\"]\n",
			[]string{"create allowlist a.com switchable=false log=true", "mark", "agent under allowlist a.com", "tests under allowlist a.com"}, true,
		},
		"agent and verifier differ": {
			"[agent]\nnetwork_mode = \"no-network\"\n[verifier]\nnetwork_mode = \"allowlist\"\nallowed_hosts = [\"pypi.org\"]\n",
			[]string{
				"create public switchable=true log=true",
				"set no-network", "mark", "agent under no-network", "set public",
				"set allowlist pypi.org", "tests under allowlist pypi.org", "set public",
			}, true,
		},
		"a separate verifier": {
			"[environment]\nnetwork_mode = \"no-network\"\n[verifier]\nnetwork_mode = \"public\"\nenvironment_mode = \"separate\"\n",
			[]string{
				"create no-network switchable=false log=false", "mark", "agent under no-network",
				"create no-network switchable=true log=true", "set public", "tests under public",
			}, true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, goodTask().with("task.toml", c.toml).with("tests/Dockerfile", "FROM debian\n"), fake.Config{Rules: []fake.Rule{rewardRule("reward.txt", "1\n")}})
			if res := b.run(t); res.ExceptionInfo != nil || rewardsText(res) != "{'reward': 1.0}" {
				t.Errorf("rewards %s, exception %+v", rewardsText(res), res.ExceptionInfo)
			}
			got := slices.DeleteFunc(networks(b), func(s string) bool { return strings.HasPrefix(s, "kill") })
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if _, err := os.Stat(filepath.Join(b.dir, jobdir.EgressLog)); (err == nil) != c.log {
				t.Errorf("the log of the egress proxy: %v; want one: %v", err, c.log)
			}
		})
	}
}

func TestStepsHaveTheirNetworks(t *testing.T) {
	t.Parallel()
	toml := "[environment]\nnetwork_mode = \"no-network\"\n" +
		"[[steps]]\nname = \"one\"\n[steps.agent]\nnetwork_mode = \"allowlist\"\nallowed_hosts = [\"a.com\"]\n" +
		"[[steps]]\nname = \"two\"\n[steps.verifier]\nnetwork_mode = \"public\"\n"
	b := newBench(t, stepTask(toml, "one", "two"), fake.Config{Rules: []fake.Rule{emptying(), rewardByTurn("reward.txt", "1", "1")}})
	if res := b.run(t); res.ExceptionInfo != nil {
		t.Errorf("got %+v", res.ExceptionInfo)
	}
	want := []string{
		"create no-network switchable=true log=true",
		"set allowlist a.com", "mark", "agent under allowlist a.com", "set no-network", "tests under no-network",
		"mark", "agent under no-network", "set public", "tests under public", "set no-network",
	}
	if got := networks(b); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestADeadAgentBeforeTheNetworkComesBack: what the agent left must not see
// the network of another phase.
func TestADeadAgentBeforeTheNetworkComesBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, goodTask().with("task.toml", "[agent]\ntimeout_sec = 5.0\nnetwork_mode = \"no-network\"\n"), fake.Config{Rules: []fake.Rule{
		fake.On("/solution/solve.sh", fake.Hang()), rewardRule("reward.txt", "1\n"),
	}})
	res := b.runTimed(t)
	if got := exceptionType(res); got != "AgentTimeoutError" {
		t.Errorf("got %q", got)
	}
	want := []string{"create public switchable=true log=true", "set no-network", "mark", "agent under no-network", "kill", "set public", "tests under public"}
	if got := networks(b); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestANetworkThatCannotBeChanged(t *testing.T) {
	t.Parallel()
	const toml = "[agent]\nnetwork_mode = \"no-network\"\n"
	for n, want := range map[int]string{1: "set no-network", 2: "agent under no-network"} {
		b := newBench(t, goodTask().with("task.toml", toml), fake.Config{Before: fake.FailAt(fake.OpNetwork, n, nil)})
		res := b.run(t)
		if got := exceptionType(res); got != "RuntimeError" || !strings.Contains(res.ExceptionInfo.Message, "changing the network policy") {
			t.Errorf("change %d fails: got %+v", n, res.ExceptionInfo)
		}
		got := networks(b)
		if !slices.Contains(got, want) || slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "tests") || n == 1 && strings.HasPrefix(s, "agent") }) {
			t.Errorf("change %d fails: got %q", n, got)
		}
	}
	all := fake.New(fake.Config{Dir: t.TempDir()}).Capabilities()
	for _, cube := range []bool{false, true} {
		caps := all
		caps.SwitchNetwork = cube
		b := newBench(t, goodTask().with("task.toml", toml), fake.Config{Capabilities: &caps})
		if cube { // whose resets bring other sandboxes
			scripted(t, b, `[{"name": "final_step"}]`)
		}
		res := b.run(t)
		const says = "[agent] agent phase network policy differs from the agent environment baseline, but this environment cannot change network policy after start."
		if exceptionType(res) != "ValueError" || res.ExceptionInfo.Message != says {
			t.Errorf("cube %v: got %+v", cube, res.ExceptionInfo)
		}
	}
	caps := all
	caps.Allowlist = false
	b := newBench(t, goodTask().with("task.toml", "[agent]\nnetwork_mode = \"allowlist\"\nallowed_hosts = [\"a.com\"]\n"), fake.Config{Capabilities: &caps})
	if res := b.run(t); exceptionType(res) != "ValueError" || !strings.Contains(res.ExceptionInfo.Message, "network_mode='allowlist' is not supported") {
		t.Errorf("a phase that needs an allow list: got %+v", res.ExceptionInfo)
	}
}

// TestARewardOutlivesItsNetwork: what was earned is kept when the baseline
// cannot be brought back afterwards.
func TestARewardOutlivesItsNetwork(t *testing.T) {
	t.Parallel()
	b := newBench(t, goodTask().with("task.toml", "[verifier]\nnetwork_mode = \"no-network\"\n"), fake.Config{
		Rules: []fake.Rule{rewardRule("reward.txt", "1\n")}, Before: fake.FailAt(fake.OpNetwork, 2, nil),
	})
	res := b.run(t)
	if got := exceptionType(res); got != "RuntimeError" || rewardsText(res) != "{'reward': 1.0}" {
		t.Errorf("got exception %q, rewards %s", got, rewardsText(res))
	}
}

func TestTheEgressLogHasNoSecretAtAnyTime(t *testing.T) {
	t.Parallel()
	const key = "sk-egress-0123456789"
	var b *bench
	b = newBench(t, goodTask().with("task.toml", "[environment]\nnetwork_mode = \"allowlist\"\nallowed_hosts = [\"a.com\"]\n[environment.env]\nAPI_KEY = \""+key+"\"\n"), fake.Config{
		Rules: []fake.Rule{rewardRule("reward.txt", "1\n")},
		Before: func(_ context.Context, c fake.Call) error {
			if c.Op != fake.OpCreate {
				return nil
			}
			line, err := json.Marshal(egress.Line{Host: key + ".a.com"})
			n, writeErr := c.Spec.Network.Log.Write(append(line, '\n'))
			data, readErr := os.ReadFile(filepath.Join(b.dir, jobdir.EgressLog))
			if n != len(line)+1 || strings.Contains(string(data), key) || !strings.Contains(string(data), ".a.com") {
				t.Errorf("%d of %d bytes written, and while the trial runs the log holds %q", n, len(line)+1, data)
			}
			return errors.Join(err, writeErr, readErr)
		},
	})
	b.run(t)
}

func TestTheEgressLogIsBoundedAndWhole(t *testing.T) {
	t.Parallel()
	b := newBench(t, goodTask().with("task.toml", "[environment]\nnetwork_mode = \"allowlist\"\nallowed_hosts = [\"a.com\"]\n"), fake.Config{
		Rules: []fake.Rule{rewardRule("reward.txt", "1\n")},
		Before: func(_ context.Context, c fake.Call) error {
			if c.Op != fake.OpCreate {
				return nil
			}
			line, err := json.Marshal(egress.Line{Host: "a.com", Reason: strings.Repeat("x", 100_000)})
			for range 100 {
				_, _ = c.Spec.Network.Log.Write(append(line, '\n'))
			}
			return err
		},
	})
	b.run(t)
	data, err := os.ReadFile(filepath.Join(b.dir, jobdir.EgressLog))
	if err != nil || len(data) > 9<<20 {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	var last egress.Line
	n := 0
	for text := range strings.Lines(string(data)) {
		last = egress.Line{}
		if err := json.Unmarshal([]byte(text), &last); err != nil {
			t.Fatalf("line %.100q: %v", text, err)
		}
		n++
	}
	if want := fmt.Sprintf("%d more lines were dropped", 100-(n-1)); !strings.Contains(last.Reason, want) {
		t.Errorf("the last line says %.100q, want %q", last.Reason, want)
	}
}
