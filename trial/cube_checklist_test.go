package trial_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// solves plays the task's solution, as the oracle does, and stops.
const solves = `[{"name": "bash", "arguments": {"command": "/solution/solve.sh"}}, {"name": "final_step"}]`

// TestCubeChecklist: a Harbor task that is run through CUBE's layer passes the
// rows that it passes otherwise. Steps and separate verifiers are refused there.
func TestCubeChecklist(t *testing.T) {
	t.Parallel()
	for _, r := range slices.Concat(environmentRows(), verifierRows(), artifactRows(), cubeRows()) {
		if strings.Contains(r.name, "multi-step") || strings.Contains(r.name, "separate") || r.name == "row 58 variables" {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, r.task, r.fake)
			scripted(t, b, solves)
			if r.change != nil {
				r.change(&b.cfg)
			}
			r.judge(t, b, b.runTimed(t))
		})
	}
}

// cubeRows are further rows that have no number.
func cubeRows() []row {
	hangs := fake.Config{Before: fake.HangAt(fake.OpCreate, 0)}
	return []row{
		{name: "build timeout", task: goodTask(), fake: hangs,
			exception: "EnvironmentStartTimeoutError", message: "Environment start timed out after 600.0 seconds"},
		{name: "multiplier of the build timeout", task: goodTask(), fake: hangs,
			change:    func(c *jobdir.TrialConfig) { c.EnvironmentBuildTimeoutMultiplier = new(10.0) },
			exception: "EnvironmentStartTimeoutError", message: "Environment start timed out after 6000.0 seconds"},
		{name: "multiplier of the verifier's time", task: goodTask(), fake: rules(fake.On("test.sh", fake.Hang())),
			change:    func(c *jobdir.TrialConfig) { c.VerifierTimeoutMultiplier = new(0.5) },
			exception: "VerifierTimeoutError", message: "Verifier execution timed out after 300.0 seconds",
			check: func(t *testing.T, b *bench, _ *jobdir.TrialResult) {
				if v := readNotes(t, b.dir).Verification; v == nil || v.RewardFiles.Started == 0 || v.RewardFiles.Ended-v.RewardFiles.Started != int64(300*time.Second) {
					t.Errorf("verification %+v", v)
				}
			}},
		{name: "variables of the job's verifier", task: toml("[verifier.env]\nA = \"task\"\nB = \"task\"\n"),
			change: func(c *jobdir.TrialConfig) { c.Verifier.Env = jobdir.EnvOf("A", "job") },
			fake: rules(fake.On("(/tests/test.sh", func(_ context.Context, p *fake.Process) (int, error) {
				return 0, p.Sandbox.WriteFile("/logs/verifier/reward.txt", []byte(map[bool]string{true: "1"}[p.Env["A"] == "job" && p.Env["B"] == "task"]), 0o644)
			})), rewards: one},
		{name: "kept sandbox", task: goodTask(), fake: rules(granted), rewards: one,
			check: func(t *testing.T, b *bench, _ *jobdir.TrialResult) {
				if n := b.backend.Count(fake.OpCreate); n != 1 {
					t.Errorf("%d sandboxes were made", n)
				}
			}},
	}
}

func TestCubeVerificationTimes(t *testing.T) {
	t.Parallel()
	b := newBench(t, goodTask(), rules(granted))
	scripted(t, b, solves)
	b.run(t)
	if v := readNotes(t, b.dir).Verification; v == nil || v.RewardFiles.Started == 0 || v.RewardFiles.Ended == 0 {
		t.Errorf("verification %+v, want the times of the tests", v)
	}
}

func TestCubeOutputIsBounded(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	b := newBench(t, goodTask(), rules(fake.On("test.sh", fake.Flood(64*mib), fake.Write("/logs/verifier/reward.txt", "1"))))
	scripted(t, b, solves)
	b.OutputLimit = mib
	b.run(t)
	if cut := readNotes(t, b.dir).Verification.OutputCutBytes; cut != 63*mib {
		t.Errorf("%d bytes were cut, want %d", cut, 63*mib)
	}
}

func TestCubeSkills(t *testing.T) {
	t.Parallel()
	skills := t.TempDir()
	if err := os.MkdirAll(filepath.Join(skills, "knots"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(skills, "knots", "SKILL.md"), []byte("Tie."), 0o644); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, goodTask(), rules(fake.On("(/tests/test.sh", func(_ context.Context, p *fake.Process) (int, error) {
		text, err := p.Sandbox.ReadFile("/harbor/skills/knots/SKILL.md")
		if err != nil || string(text) != "Tie." {
			t.Errorf("the skill holds %q, %v", text, err)
		}
		return 0, p.Sandbox.WriteFile("/logs/verifier/reward.txt", []byte("1"), 0o644)
	})))
	scripted(t, b, solves)
	b.cfg.Agent.Skills = []string{filepath.Join(skills, "knots")}
	if res := b.run(t); rewardsText(res) != one {
		t.Errorf("rewards %s, exception %+v", rewardsText(res), res.ExceptionInfo)
	}
}

func TestCubeAmend(t *testing.T) {
	t.Parallel()
	user := ""
	b := newBench(t, goodTask(), rules(fake.On("(/tests/test.sh", func(_ context.Context, p *fake.Process) (int, error) {
		user = p.User
		return 0, p.Sandbox.WriteFile("/logs/verifier/reward.txt", []byte("1"), 0o644)
	})))
	scripted(t, b, solves)
	b.Amend = func(_ jobdir.TrialConfig, task *harbor.Task) {
		task.Config.Verifier.User = &harbor.User{Name: "grader"}
	}
	if res := b.run(t); rewardsText(res) != one || user != "grader" {
		t.Errorf("rewards %s; the tests ran as %q", rewardsText(res), user)
	}
}

// TestCubeRewardChangedAfterItWasRead: as for other trials.
func TestCubeRewardChangedAfterItWasRead(t *testing.T) {
	t.Parallel()
	var b *bench
	b = newBench(t, goodTask(), fake.Config{Rules: []fake.Rule{rewardRule("reward.txt", "0")}, Before: func(_ context.Context, c fake.Call) error {
		if c.Op != fake.OpDestroy {
			return nil
		}
		path := filepath.Join(b.dir, "verifier", "reward.txt")
		return errors.Join(os.WriteFile(path, []byte("1"), 0o644), os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)))
	}})
	scripted(t, b, solves)
	res := b.run(t)
	v := readNotes(t, b.dir).Verification
	if v == nil || len(v.ChangedLater) != 1 || !slices.Contains(v.Suspicions, "the reward files were changed after they were read") {
		t.Errorf("notes: %+v", v)
	}
	if got := rewardsText(res); got != "{'reward': 0.0}" {
		t.Errorf("rewards %s", got)
	}
}

// TestHomeOfExtraInstructions: a path that begins with ~ is below the home
// directory of whoever runs the trial, in both ways of running it.
func TestHomeOfExtraInstructions(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{"oracle", "scripted"} {
		b := newBench(t, goodTask(), rules(granted))
		if agent == "scripted" {
			scripted(t, b, solves)
		}
		home := t.TempDir()
		if err := os.WriteFile(filepath.Join(home, "more.md"), []byte("More."), 0o644); err != nil {
			t.Fatal(err)
		}
		b.Lookup = func(name string) (string, bool) { return home, name == "HOME" }
		b.cfg.ExtraInstructionPaths = []string{"~/more.md"}
		if res := b.run(t); rewardsText(res) != one || res.ExceptionInfo != nil {
			t.Errorf("%s: rewards %s, exception %+v", agent, rewardsText(res), res.ExceptionInfo)
		}
	}
}
