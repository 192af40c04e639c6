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
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// tasks are directories that tests run, as files.
type taskFiles map[string]string

func goodTask() taskFiles {
	return taskFiles{
		"task.toml":              "schema_version = \"1.3\"\n[agent]\ntimeout_sec = 60.0\n",
		"instruction.md":         "Do it.\n",
		"environment/Dockerfile": "FROM debian\n",
		"tests/test.sh":          "#!/bin/bash\n",
		"solution/solve.sh":      "#!/bin/bash\n",
	}
}

func (f taskFiles) with(name, content string) taskFiles {
	f[name] = content
	return f
}

func (f taskFiles) without(name string) taskFiles {
	delete(f, name)
	return f
}

func (f taskFiles) write(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a-task")
	for name, content := range f {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// bench is a runner on the fake backend, with what it was told.
type bench struct {
	*trial.Runner
	backend *fake.Backend
	cfg     jobdir.TrialConfig
	dir     string

	mu     sync.Mutex
	events []trial.EventKind
}

func newBench(t testing.TB, task taskFiles, cfg fake.Config) *bench {
	t.Helper()
	cfg.Dir = t.TempDir()
	b := &bench{backend: fake.New(cfg)}
	t.Cleanup(func() { fake.Verify(t, b.backend) })
	b.cfg = jobdir.NewTrialConfig(jobdir.TaskConfig{Path: new(task.write(t))})
	b.cfg.TrialsDir, b.cfg.TrialName = t.TempDir(), "a-task__1234567"
	b.dir = filepath.Join(b.cfg.TrialsDir, b.cfg.TrialName)
	b.Runner = &trial.Runner{
		Backend: b.backend,
		Lookup:  func(name string) (string, bool) { return "host value", name == "ON_HOST" },
		Now:     time.Now,
		Agents:  agents.All(),
		Emit: func(e trial.Event) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.events = append(b.events, e.Kind)
		},
	}
	return b
}

func (b *bench) run(t testing.TB) *jobdir.TrialResult {
	t.Helper()
	res, err := b.Run(t.Context(), b.cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// runTimed is run with a clock that stands still while something is done, so
// that limits pass only when everything waits for them.
func (b *bench) runTimed(t *testing.T) (res *jobdir.TrialResult) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { res = b.run(t) })
	return res
}

func rewardRule(file, content string) fake.Rule {
	return fake.On("/tests/test.sh", fake.Write("/logs/verifier/"+file, content))
}

func exceptionType(r *jobdir.TrialResult) string {
	if r.ExceptionInfo == nil {
		return ""
	}
	return r.ExceptionInfo.Type
}

func rewardsText(r *jobdir.TrialResult) string {
	if r.VerifierResult == nil {
		return "no result"
	}
	return value.Repr(r.VerifierResult.Rewards.Object())
}

func TestGoodTrial(t *testing.T) {
	t.Parallel()
	b := newBench(t, goodTask(), fake.Config{Rules: []fake.Rule{
		fake.On("/solution/solve.sh", fake.Print("solved\n"), fake.Exit(7)),
		rewardRule("reward.txt", "0.5\n"),
	}})
	res := b.run(t)
	if got := rewardsText(res); got != "{'reward': 0.5}" || res.ExceptionInfo != nil {
		t.Errorf("rewards %s, exception %v", got, res.ExceptionInfo)
	}
	for name, want := range map[string]string{
		"agent/oracle.txt": "solved\n", "agent/exit-code.txt": "7", "verifier/test-stdout.txt": "",
	} {
		if got, err := os.ReadFile(filepath.Join(b.dir, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", name, got, err, want)
		}
	}
	for _, phase := range []*jobdir.Timing{res.EnvironmentSetup, res.AgentSetup, res.AgentExecution, res.Verifier} {
		if phase == nil || phase.StartedAt == nil || phase.FinishedAt == nil {
			t.Errorf("a phase has no timing: %+v", phase)
		}
	}
	want := []trial.EventKind{
		trial.EventStart, trial.EventEnvironmentStart, trial.EventAgentSetupStart,
		trial.EventAgentStart, trial.EventVerificationStart, trial.EventEnd,
	}
	if !slices.Equal(b.events, want) {
		t.Errorf("events %v, want %v", b.events, want)
	}
	data, err := os.ReadFile(filepath.Join(b.dir, "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	stored, err := jobdir.ParseTrialResult(data)
	if err != nil || stored.TaskChecksum == "" || stored.AgentInfo.Version != "1.0.0" {
		t.Errorf("stored result: %v, %+v", err, stored.AgentInfo)
	}
}

// TestFaults goes through the table of exception names of the Harbor job
// format, section 3.5.
func TestFaults(t *testing.T) {
	t.Parallel()
	reward := rewardRule("reward.txt", "1")
	for _, c := range []struct {
		name      string
		task      taskFiles
		fake      fake.Config
		change    func(*jobdir.TrialConfig)
		exception string
		message   string // part of it
		rewards   string
	}{
		{name: "no instruction", task: goodTask().without("instruction.md"),
			exception: "FileNotFoundError", message: "is missing instruction.md", rewards: "no result"},
		{name: "no tests", task: goodTask().without("tests/test.sh"),
			exception: "FileNotFoundError", message: "does not contain tests/test.sh", rewards: "no result"},
		{name: "broken TOML", task: goodTask().with("task.toml", "[agent\n"),
			exception: "TOMLDecodeError", message: "line 1", rewards: "no result"},
		{name: "wrong type", task: goodTask().with("task.toml", "[agent]\ntimeout_sec = \"soon\"\n"),
			exception: "ValidationError", message: "agent.timeout_sec", rewards: "no result"},
		{name: "unknown key", task: goodTask().with("task.toml", "surprise = 1\n"), fake: fake.Config{Rules: []fake.Rule{reward}},
			rewards: "{'reward': 1.0}"},
		{name: "no definition", task: goodTask().without("environment/Dockerfile").with("environment/data.txt", ""),
			exception: "FileNotFoundError", message: "has no environment definition", rewards: "no result"},
		{name: "image not found", task: goodTask(),
			fake:      fake.Config{Before: fake.FailAt(fake.OpCreate, 1, fmt.Errorf("image %q: %w", "nowhere/x", sandbox.ErrImageNotFound))},
			exception: "RuntimeError", message: "nowhere/x", rewards: "no result"},
		{name: "build fails", task: goodTask(),
			fake:      fake.Config{Before: fake.FailAt(fake.OpCreate, 1, &sandbox.BuildError{Image: "x", Log: "step 2 failed", Err: errors.New("exit 1")})},
			exception: "RuntimeError", message: "step 2 failed", rewards: "no result"},
		{name: "environment too slow", task: goodTask().with("task.toml", "[environment]\nbuild_timeout_sec = 0.05\n"),
			fake:      fake.Config{Before: fake.HangAt(fake.OpCreate, 0)},
			exception: "EnvironmentStartTimeoutError", message: "Environment start timed out after 0.05 seconds", rewards: "no result"},
		{name: "unresolved template", task: goodTask().with("task.toml", "[verifier.env]\nA = \"${MISSING}\"\n"), fake: fake.Config{Rules: []fake.Rule{reward}},
			exception: "ValueError", message: "Environment variable 'MISSING' not found", rewards: "no result"},
		{name: "unhealthy", task: goodTask().with("task.toml", "[environment.healthcheck]\ncommand = \"check\"\ninterval_sec = 0.0\nretries = 2\n"),
			fake:      fake.Config{Rules: []fake.Rule{fake.On("check", fake.Exit(1))}},
			exception: "HealthcheckError", message: "Healthcheck failed after 2 consecutive retries: check", rewards: "no result"},
		{name: "hanging healthcheck", task: goodTask().with("task.toml", "[environment.healthcheck]\ncommand = \"check\"\ntimeout_sec = 1.9\n"),
			fake:      fake.Config{Rules: []fake.Rule{fake.On("check", fake.Hang())}},
			exception: "RuntimeError", message: "Command timed out after 1 seconds", rewards: "no result"},
		{name: "no solution", task: goodTask().without("solution/solve.sh"),
			exception: "FileNotFoundError", message: "Solution script not found: ", rewards: "no result"},
		{name: "agent too slow", task: goodTask().with("task.toml", "[agent]\ntimeout_sec = 0.05\n"),
			fake:      fake.Config{Rules: []fake.Rule{fake.On("solve.sh", fake.Hang()), reward}},
			exception: "AgentTimeoutError", message: "Agent execution timed out after 0.05 seconds", rewards: "{'reward': 1.0}"},
		{name: "agent exits non-zero", task: goodTask(), change: commandAgent("work"),
			fake:      fake.Config{Rules: []fake.Rule{fake.On("work", fake.Print("why"), fake.Exit(3)), reward}},
			exception: "NonZeroAgentExitCodeError", message: "Command failed (exit 3): work\nstdout: why", rewards: "{'reward': 1.0}"},
		{name: "agent set-up fails", task: goodTask(), change: func(c *jobdir.TrialConfig) {
			commandAgent("work")(c)
			c.Agent.Kwargs.Set("install", value.Str("get it"))
		}, fake: fake.Config{Rules: []fake.Rule{fake.On("get it", fake.Exit(4)), reward}},
			exception: "NonZeroAgentExitCodeError", message: "Command failed (exit 4): get it", rewards: "no result"},
		{name: "unknown agent", task: goodTask(), change: func(c *jobdir.TrialConfig) { c.Agent.Name = new("zzz") },
			exception: "ValueError", message: "Agent name zzz is not valid", rewards: "no result"},
		{name: "tests cannot be uploaded", task: goodTask(),
			fake:      fake.Config{Before: fake.FailAt(fake.OpUpload, 2, nil)},
			exception: "AddTestsDirError", message: "Failed to add tests directory to environment.", rewards: "no result"},
		{name: "no reward", task: goodTask(), fake: fake.Config{Rules: []fake.Rule{fake.On("test.sh", fake.Exit(139))}},
			exception: "RewardFileNotFoundError", message: "No reward file found at ", rewards: "no result"},
		{name: "empty reward", task: goodTask(), fake: fake.Config{Rules: []fake.Rule{rewardRule("reward.txt", "")}},
			exception: "RewardFileEmptyError", message: "Reward file is empty at ", rewards: "no result"},
		{name: "garbled reward", task: goodTask(), fake: fake.Config{Rules: []fake.Rule{rewardRule("reward.json", "{")}},
			exception: "VerifierOutputParseError", message: "Failed to parse rewards from JSON file ", rewards: "no result"},
		{name: "reward of a wrong type", task: goodTask(), fake: fake.Config{Rules: []fake.Rule{rewardRule("reward.json", "[1]")}},
			exception: "ValidationError", message: "1 validation error for VerifierResult", rewards: "no result"},
		{name: "null reward", task: goodTask(), fake: fake.Config{Rules: []fake.Rule{rewardRule("reward.json", "null")}},
			rewards: "None"},
		{name: "hanging verifier", task: goodTask().with("task.toml", "[verifier]\ntimeout_sec = 0.05\n"),
			fake:      fake.Config{Rules: []fake.Rule{fake.On("test.sh", fake.Hang())}},
			exception: "VerifierTimeoutError", message: "Verifier execution timed out after 0.05 seconds", rewards: "no result"},
		{name: "sandbox cannot be removed", task: goodTask(),
			fake:      fake.Config{Rules: []fake.Rule{reward}, Before: fake.FailAt(fake.OpDestroy, 1, nil)},
			exception: "RuntimeError", message: "removing the sandbox", rewards: "{'reward': 1.0}"},
		{name: "GPUs", task: goodTask().with("task.toml", "[environment]\ngpus = 2\n"),
			exception: "RuntimeError", message: "Task requires 2 GPU(s) but", rewards: "no result"},
		{name: "resource requests", task: goodTask(), change: func(c *jobdir.TrialConfig) { c.Environment.CPUEnforcementPolicy = "request" },
			exception: "ValueError", message: "does not support CPU resource requests", rewards: "no result"},
		{name: "limit without a value", task: goodTask(), change: func(c *jobdir.TrialConfig) { c.Environment.MemoryEnforcementPolicy = "limit" },
			exception: "ValueError", message: "Memory resource mode 'limit' requires a task value or numeric override.", rewards: "no result"},
		{name: "verification disabled", task: goodTask(), change: func(c *jobdir.TrialConfig) { c.Verifier.Disable = true },
			rewards: "no result"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c.task, c.fake)
			if c.change != nil {
				c.change(&b.cfg)
			}
			if c.name == "sandbox cannot be removed" {
				t.Cleanup(func() { destroyAll(t, b.backend) })
			}
			res := b.runTimed(t)
			if got := exceptionType(res); got != c.exception {
				t.Errorf("exception %q (%+v), want %q", got, res.ExceptionInfo, c.exception)
			}
			if c.message != "" && (res.ExceptionInfo == nil || !strings.Contains(res.ExceptionInfo.Message, c.message)) {
				t.Errorf("message of %+v lacks %q", res.ExceptionInfo, c.message)
			}
			if got := rewardsText(res); got != c.rewards {
				t.Errorf("rewards %s, want %s", got, c.rewards)
			}
			if _, err := os.Stat(filepath.Join(b.dir, "result.json")); err != nil {
				t.Error(err)
			}
			_, err := os.Stat(filepath.Join(b.dir, "exception.txt"))
			if (err == nil) != (c.exception != "") {
				t.Errorf("exception.txt: %v", err)
			}
		})
	}
}

func commandAgent(run string) func(*jobdir.TrialConfig) {
	return func(c *jobdir.TrialConfig) {
		c.Agent.Name = new("command")
		c.Agent.Kwargs = value.NewObject(0)
		c.Agent.Kwargs.Set("run", value.Str(run))
	}
}

func destroyAll(t *testing.T, b *fake.Backend) {
	for _, sb := range b.Sandboxes() {
		if err := sb.Destroy(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

func TestDeadlineKillsBeforeVerification(t *testing.T) {
	t.Parallel()
	var left atomic.Bool
	b := newBench(t, goodTask().with("task.toml", "[agent]\ntimeout_sec = 0.05\n"), fake.Config{Rules: []fake.Rule{
		fake.On("solve.sh", fake.Leave(func(ctx context.Context, _ *fake.Process) (int, error) {
			<-ctx.Done()
			left.Store(true)
			return 0, context.Cause(ctx)
		}), fake.Hang()),
		fake.On("test.sh", func(_ context.Context, p *fake.Process) (int, error) {
			if !left.Load() {
				t.Error("the verifier started while the agent's daemon was running")
			}
			return 0, p.Sandbox.WriteFile("/logs/verifier/reward.txt", []byte("1"), 0o644)
		}),
	}})
	res := b.runTimed(t)
	if exceptionType(res) != "AgentTimeoutError" || rewardsText(res) != "{'reward': 1.0}" {
		t.Errorf("exception %q, rewards %s", exceptionType(res), rewardsText(res))
	}
	if notes := readNotes(t, b.dir); notes.AgentKilled == nil || !notes.AgentKilled.ProvenGone {
		t.Errorf("notes: %+v", notes.AgentKilled)
	}
}

func TestUnprovenDeathIsNotVerified(t *testing.T) {
	t.Parallel()
	b := newBench(t, goodTask().with("task.toml", "[agent]\ntimeout_sec = 0.05\n"), fake.Config{
		Rules:  []fake.Rule{fake.On("solve.sh", fake.Hang()), rewardRule("reward.txt", "1")},
		Before: fake.FailAt(fake.OpKillTree, 1, errors.New("a process is left")),
	})
	res := b.runTimed(t)
	if exceptionType(res) != "AgentNotGoneError" || res.VerifierResult != nil || res.Verifier != nil {
		t.Errorf("exception %q, verifier %v %v", exceptionType(res), res.Verifier, res.VerifierResult)
	}
	notes := readNotes(t, b.dir)
	if notes.AgentKilled == nil || notes.AgentKilled.ProvenGone || len(notes.Errors) != 2 {
		t.Errorf("notes: %+v", notes)
	}
}

func readNotes(t *testing.T, dir string) jobdir.Notes {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, jobdir.NotesFile))
	if err != nil {
		t.Fatal(err)
	}
	var notes jobdir.Notes
	if err := json.Unmarshal(data, &notes); err != nil {
		t.Fatal(err)
	}
	return notes
}

func TestCancelIsRecorded(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"create", "agent", "verifier"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			stop := func(ctx context.Context, _ *fake.Process) (int, error) {
				cancel()
				<-ctx.Done()
				return 0, context.Cause(ctx)
			}
			cfg := fake.Config{}
			switch op {
			case "create":
				cfg.Before = func(ctx context.Context, call fake.Call) error {
					if call.Op != fake.OpCreate {
						return nil
					}
					cancel()
					<-ctx.Done()
					return context.Cause(ctx)
				}
			case "agent":
				cfg.Rules = []fake.Rule{fake.On("solve.sh", stop)}
			case "verifier":
				cfg.Rules = []fake.Rule{fake.On("test.sh", stop)}
			}
			b := newBench(t, goodTask(), cfg)
			res, err := b.Run(ctx, b.cfg, 1)
			if err != nil {
				t.Fatal(err)
			}
			if exceptionType(res) != exception.CancelledError || res.ExceptionInfo.Message != "" {
				t.Errorf("exception %+v", res.ExceptionInfo)
			}
			if n := len(b.events); n < 2 || b.events[n-2] != trial.EventCancel || b.events[n-1] != trial.EventEnd {
				t.Errorf("events %v", b.events)
			}
		})
	}
}

func TestEnvironmentOfCommands(t *testing.T) {
	t.Parallel()
	toml := `[environment.env]
FROM_TASK = "${ON_HOST}"
BOTH = "task"
[verifier]
user = "grader"
[verifier.env]
SECRET_ANSWER = "${UNSET:-42}"
[agent]
user = "worker"
`
	seen := map[string]fake.Process{}
	var mu sync.Mutex
	remember := func(name string) fake.Handler {
		return func(_ context.Context, p *fake.Process) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			seen[name] = fake.Process{Env: p.Env, User: p.User}
			return 0, nil
		}
	}
	b := newBench(t, goodTask().with("task.toml", toml), fake.Config{Rules: []fake.Rule{
		fake.On("solve.sh", remember("agent")),
		fake.On("test.sh", remember("tests"), fake.Write("/logs/verifier/reward.txt", "1")),
	}})
	b.cfg.Environment.Env = jobdir.EnvOf("BOTH", "job")
	b.run(t)
	if got := seen["agent"]; got.User != "worker" || got.Env["FROM_TASK"] != "host value" || got.Env["BOTH"] != "job" || got.Env["SECRET_ANSWER"] != "" {
		t.Errorf("agent ran as %q with %v", got.User, got.Env)
	}
	if got := seen["tests"]; got.User != "grader" || got.Env["SECRET_ANSWER"] != "42" {
		t.Errorf("tests ran as %q with %v", got.User, got.Env)
	}
}

func TestArtifacts(t *testing.T) {
	t.Parallel()
	toml := `artifacts = ["/data/out.txt", {source = "/data/tree", destination = "kept", exclude = ["*.tmp"]}, "/nowhere.txt", {source = "/data/out.txt", destination = "../../escape.txt"}]
`
	b := newBench(t, goodTask().with("task.toml", toml), fake.Config{
		Files: map[string]string{"/data/out.txt": "out", "/data/tree/a": "a", "/data/tree/b.tmp": "b"},
		Rules: []fake.Rule{
			{Match: func(c sandbox.Command) bool { return slices.Equal(c.Argv, []string{"test", "-d", "/data/tree"}) }, Do: fake.Exit(0)},
			{Match: func(c sandbox.Command) bool { return len(c.Argv) > 0 && c.Argv[0] == "test" }, Do: fake.Exit(1)},
			rewardRule("reward.txt", "1"),
		},
	})
	b.run(t)
	want := `[
  {
    "source": "/logs/artifacts",
    "destination": "artifacts",
    "type": "directory",
    "status": "empty"
  },
  {
    "source": "/data/out.txt",
    "destination": "artifacts/out.txt",
    "type": "file",
    "status": "ok"
  },
  {
    "source": "/data/tree",
    "destination": "artifacts/kept",
    "type": "directory",
    "status": "ok"
  },
  {
    "source": "/nowhere.txt",
    "destination": "artifacts/nowhere.txt",
    "type": "file",
    "status": "failed"
  },
  {
    "source": "/data/out.txt",
    "destination": "artifacts/../../escape.txt",
    "type": "file",
    "status": "failed"
  }
]`
	if got, err := os.ReadFile(filepath.Join(b.dir, "artifacts", "manifest.json")); err != nil || string(got) != want {
		t.Errorf("manifest: %v\n%s", err, got)
	}
	if got, err := os.ReadFile(filepath.Join(b.dir, "artifacts", "kept", "a")); err != nil || string(got) != "a" {
		t.Errorf("kept/a holds %q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "artifacts", "kept", "b.tmp")); err == nil {
		t.Error("an excluded file was collected")
	}
	if _, err := os.Stat(filepath.Join(b.dir, "..", "escape.txt")); err == nil {
		t.Error("an artifact was written outside the trial")
	}
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	b := newBench(t, goodTask(), fake.Config{Rules: []fake.Rule{
		fake.On("solve.sh", fake.Flood(gib)),
		fake.On("test.sh", fake.Flood(gib), fake.Write("/logs/verifier/reward.txt", "1")),
	}})
	b.OutputLimit = 1 << 20
	b.run(t)
	for _, name := range []string{"agent/oracle.txt", "verifier/test-stdout.txt"} {
		info, err := os.Stat(filepath.Join(b.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() < 1<<20 || info.Size() > 1<<20+200 {
			t.Errorf("%s has %d bytes, want about 1 MiB", name, info.Size())
		}
	}
	if cut := readNotes(t, b.dir).Verification.OutputCutBytes; cut != gib-1<<20 {
		t.Errorf("%d bytes were cut, want %d", cut, gib-1<<20)
	}
}

func TestPlantedRewardIsNoted(t *testing.T) {
	t.Parallel()
	b := newBench(t, goodTask(), fake.Config{Rules: []fake.Rule{
		fake.On("solve.sh", fake.Write("/logs/verifier/reward.json", `{"reward": 1}`)),
		rewardRule("reward.txt", "0"),
	}})
	res := b.run(t)
	if got := rewardsText(res); got != "{'reward': 1}" {
		t.Errorf("rewards %s: a planted reward.json counts, as in Harbor", got)
	}
	want := []string{"reward.json existed before the verifier started and was not changed by it"}
	if got := readNotes(t, b.dir).Verification.Suspicions; !slices.Equal(got, want) {
		t.Errorf("suspicions %q, want %q", got, want)
	}
}

// BenchmarkNopTrial is a whole trial, all files written, without anything to
// do in it: what proctor itself costs.
func BenchmarkNopTrial(b *testing.B) {
	bench := newBench(b, goodTask(), fake.Config{Rules: []fake.Rule{rewardRule("reward.txt", "1")}})
	bench.cfg.Agent.Name = new("nop")
	var took []time.Duration
	for b.Loop() {
		bench.cfg.TrialName = fmt.Sprintf("a-task__%d", len(took))
		start := time.Now()
		bench.run(b)
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
}
