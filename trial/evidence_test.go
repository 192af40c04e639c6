package trial_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/value"
)

// sealing are the rules of a sandbox that can be sealed: what the fake, which
// runs no programs, has to do to the mounted directory.
func sealing() []fake.Rule {
	script := func(has string) func(sandbox.Command) bool {
		return func(c sandbox.Command) bool {
			return len(c.Argv) > 2 && c.Argv[0] == "bash" && strings.Contains(c.Argv[2], has)
		}
	}
	logs := func(p *fake.Process) string {
		for _, m := range p.Sandbox.Spec().Mounts {
			if m.Target == "/logs/verifier" {
				return m.Source
			}
		}
		return p.Sandbox.Path("/logs/verifier")
	}
	chmod := func(mode os.FileMode) fake.Handler {
		return func(_ context.Context, p *fake.Process) (int, error) { return 0, os.Chmod(logs(p), mode) }
	}
	return []fake.Rule{
		fake.On(`echo "$EUID"`, fake.Print("0\n")),
		{Match: script("find"), Do: func(_ context.Context, p *fake.Process) (int, error) {
			entries, err := os.ReadDir(logs(p))
			for _, e := range entries {
				err = errors.Join(err, os.RemoveAll(filepath.Join(logs(p), e.Name())))
			}
			return 0, err
		}},
		{Match: script("chown"), Do: chmod(0o755)},
		{Match: script("chmod 777"), Do: chmod(0o777)},
	}
}

func TestSealedTrials(t *testing.T) {
	t.Parallel()
	granted := fake.On("(/tests/test.sh", fake.Write("/logs/verifier/reward.txt", "1")) // and not when it is made executable
	plant := fake.On("solve.sh", fake.Write("/logs/verifier/reward.json", `{"reward": 1}`))
	separate := toml("[verifier]\nenvironment_mode = \"separate\"\n").with("tests/Dockerfile", "FROM x\n")
	for _, c := range []struct {
		name      string
		task      taskFiles
		rules     []fake.Rule
		before    func(context.Context, fake.Call) error
		exception string
		step      string // exception of the first step
		rewards   string
	}{
		{name: "good", task: goodTask(), rules: []fake.Rule{granted}, rewards: one},
		{name: "planted", task: goodTask(), rules: []fake.Rule{plant, granted}, exception: "RewardTamperedError"},
		{name: "separate", task: separate, rules: []fake.Rule{emptying(), granted}, rewards: one},
		{name: "planted before a separate verifier", task: separate, rules: []fake.Rule{emptying(), plant, granted}, exception: "RewardTamperedError"},
		{name: "steps", task: stepTask(twoSteps, "one", "two"), rules: []fake.Rule{emptying(), granted}, rewards: one},
		{name: "planted in a step", task: stepTask(twoSteps, "one", "two"), rules: []fake.Rule{emptying(), plant, granted}, step: "RewardTamperedError"},
		{name: "the agent cannot be killed", task: goodTask(), rules: []fake.Rule{granted},
			before: fake.FailAt(fake.OpEndAll, 1, errors.New("one is left")), exception: "AgentNotGoneError"},
		{name: "not everything can be ended", task: goodTask(), rules: []fake.Rule{granted},
			before: fake.FailAt(fake.OpEndAll, 1, sandbox.ErrUnsupported), exception: "VerifierSealError"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c.task, fake.Config{Rules: append(c.rules, sealing()...), Before: c.before})
			b.SealedVerifier = true
			res := b.run(t)
			if exceptionType(res) != c.exception || rewardsText(res) != firstText(c.rewards, "no result") {
				t.Errorf("exception %+v, rewards %s; want %q, %q", res.ExceptionInfo, rewardsText(res), c.exception, c.rewards)
			}
			if c.step != "" && (len(res.StepResults) != 1 || res.StepResults[0].ExceptionInfo == nil || res.StepResults[0].ExceptionInfo.Type != c.step) {
				t.Errorf("steps %+v, want one with %s", res.StepResults, c.step)
			}
			notes := readNotes(t, b.dir)
			gone := strings.Contains(c.name, "separate") // with its sandbox
			if !notes.SealedVerifier || !gone && (notes.AgentKilled == nil || notes.AgentKilled.Reason != "sealed verifier") {
				t.Errorf("notes: %+v", notes)
			}
		})
	}
}

// TestSealedEndsEverything: what the agent left, also by its set-up, and what is older than
// the agent. That is started again only where the agent could not change it.
func TestSealedEndsEverything(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, user, warning string
		processes           int // while the tests run, themselves included
	}{
		{"as root", "root", "is not started again", 1},
		{"as a user", "agent", "", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			leave := func() fake.Handler { return fake.Leave(fake.Hang()) }
			task := toml("[environment.healthcheck]\ncommand = \"serve\"\n[agent]\nuser = \"" + c.user + "\"\n")
			b := newBench(t, task, fake.Config{Rules: slices.Concat([]fake.Rule{
				{Match: func(cmd sandbox.Command) bool { return cmd.Shell == `echo "$EUID"` && cmd.User == "agent" }, Do: fake.Print("1000\n")},
				fake.On("serve", leave()),
				fake.On("get it", leave()),
				fake.On("work", leave()),
				fake.On("cat /proc/", fake.Print(statOf(7, "server")+"\n\n9\n")),
				fake.On("(/tests/test.sh", func(_ context.Context, p *fake.Process) (int, error) {
					if n := p.Sandbox.Processes(); n != c.processes {
						t.Errorf("%d processes while the tests run, want %d", n, c.processes)
					}
					return 0, p.Sandbox.WriteFile("/logs/verifier/reward.txt", []byte("1"), 0o644)
				}),
			}, sealing())})
			commandAgent("work")(&b.cfg)
			b.cfg.Agent.Kwargs.Set("install", value.Str("get it"))
			b.SealedVerifier = true
			if res := b.run(t); rewardsText(res) != one || res.ExceptionInfo != nil {
				t.Errorf("rewards %s, exception %+v", rewardsText(res), res.ExceptionInfo)
			}
			notes := readNotes(t, b.dir)
			if k := notes.AgentKilled; k == nil || !k.ProvenGone || notes.AgentLeft != nil {
				t.Errorf("killed %+v, left %+v", k, notes.AgentLeft)
			}
			warned := slices.ContainsFunc(notes.Warnings, func(w string) bool {
				return strings.Contains(w, "is not started again") && strings.Contains(w, `"server"`)
			})
			if warned != (c.warning != "") {
				t.Errorf("warnings: %q", notes.Warnings)
			}
		})
	}
}

// statOf is a line of /proc/PID/stat.
func statOf(pid int, name string) string {
	return fmt.Sprintf("%d (%s) S 1%s 77 0 0 0", pid, name, strings.Repeat(" 0", 17))
}

// TestWhatOlderProcessesStart: what processes from before the agent have started is spared
// when the agent is ended, and nothing is said to be proven while it is there.
func TestWhatOlderProcessesStart(t *testing.T) {
	t.Parallel()
	lists := 0
	b := newBench(t, toml("[agent]\ntimeout_sec = 0.05\n"), fake.Config{Rules: []fake.Rule{
		rewardRule("reward.txt", "1"),
		fake.On("work", fake.Hang()),
		fake.On("cat /proc/", func(_ context.Context, p *fake.Process) (int, error) {
			text := statOf(7, "server")
			if lists++; lists > 1 {
				text += "\n" + statOf(8, "survivor")
			}
			_, err := fmt.Fprint(p.Stdout, text+"\n\n9\n")
			return 0, err
		}),
	}})
	commandAgent("work")(&b.cfg)
	res := b.run(t)
	notes := readNotes(t, b.dir)
	if rewardsText(res) != one || exceptionType(res) != "AgentTimeoutError" {
		t.Errorf("rewards %s, exception %+v", rewardsText(res), res.ExceptionInfo)
	}
	if k := notes.AgentKilled; k == nil || k.ProvenGone || !strings.Contains(k.Error, "spared: 1") {
		t.Errorf("killed: %+v", k)
	}
	if l := notes.AgentLeft; l == nil || !slices.Equal(l.Names, []string{"survivor"}) || len(notes.Verification.Suspicions) != 1 {
		t.Errorf("left %+v, evidence %+v", l, notes.Verification)
	}
}

// TestRewardChangedAfterItWasRead: something older than the agent's processes
// rewrites the file.
func TestRewardChangedAfterItWasRead(t *testing.T) {
	t.Parallel()
	for _, sealed := range []bool{false, true} {
		name := map[bool]string{false: "open", true: "sealed"}[sealed]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b *bench
			b = newBench(t, goodTask(), fake.Config{Rules: append([]fake.Rule{rewardRule("reward.txt", "0")}, sealing()...), Before: func(_ context.Context, c fake.Call) error {
				if c.Op != fake.OpDestroy {
					return nil
				}
				path := filepath.Join(b.dir, "verifier", "reward.txt")
				return errors.Join(os.WriteFile(path, []byte("1"), 0o644), os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)))
			}})
			b.SealedVerifier = sealed
			res := b.run(t)
			notes := readNotes(t, b.dir)
			if notes.Verification == nil || len(notes.Verification.ChangedLater) != 1 || !slices.Contains(notes.Verification.Suspicions, "the reward files were changed after they were read") {
				t.Errorf("notes: %+v", notes.Verification)
			}
			wantException, wantRewards := "", "{'reward': 0.0}"
			if sealed {
				wantException, wantRewards = "RewardTamperedError", "no result"
			}
			if exceptionType(res) != wantException || rewardsText(res) != wantRewards {
				t.Errorf("exception %+v, rewards %s", res.ExceptionInfo, rewardsText(res))
			}
		})
	}
}
