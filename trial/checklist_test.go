package trial_test

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/value"
)

// row is one row of the acceptance checklist of the Harbor task format: a trial
// and what must come of it.
type row struct {
	name   string
	task   taskFiles
	fake   fake.Config
	change func(*jobdir.TrialConfig)

	exception string // type at trial level
	message   string // part of it
	rewards   string // "no result" when empty
	check     func(t *testing.T, b *bench, res *jobdir.TrialResult)
}

// TestChecklist has the rows that can be seen without real sandboxes; the rows
// on files are in package harbor, the others in the program's tests.
// docs/compatibility.md lists them all.
func TestChecklist(t *testing.T) {
	t.Parallel()
	for _, r := range slices.Concat(environmentRows(), verifierRows(), separateRows(), stepRows(), artifactRows()) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, r.task, r.fake)
			if r.change != nil {
				r.change(&b.cfg)
			}
			r.judge(t, b, b.runTimed(t))
		})
	}
}

// judge compares the outcome of the trial with what the row says.
func (r row) judge(t *testing.T, b *bench, res *jobdir.TrialResult) {
	t.Helper()
	if got := exceptionType(res); got != r.exception || r.message != "" && (res.ExceptionInfo == nil || !strings.Contains(res.ExceptionInfo.Message, r.message)) {
		t.Errorf("exception %q (%+v), want %q with %q", got, res.ExceptionInfo, r.exception, r.message)
	}
	if want := firstText(r.rewards, "no result"); rewardsText(res) != want {
		t.Errorf("rewards %s, want %s", rewardsText(res), want)
	}
	if r.check != nil {
		r.check(t, b, res)
	}
}

func firstText(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func toml(text string) taskFiles { return goodTask().with("task.toml", text) }

func rules(all ...fake.Rule) fake.Config { return fake.Config{Rules: all} }

// granted is a verifier that gives 1, and what rewards then are.
var granted = rewardRule("reward.txt", "1")

const one = "{'reward': 1.0}"

// specs are the sandboxes that were asked for.
func specs(b *bench) (all []sandbox.Spec) {
	for _, c := range b.backend.Calls() {
		if c.Op == fake.OpCreate {
			all = append(all, c.Spec)
		}
	}
	return all
}

// ran reports whether a command with this text was run.
func ran(b *bench, text string) bool {
	return slices.ContainsFunc(b.backend.Calls(), func(c fake.Call) bool {
		return c.Op == fake.OpExec && (strings.Contains(c.Command.Shell, text) || strings.Contains(strings.Join(c.Command.Argv, " "), text))
	})
}

func nothingMade(t *testing.T, b *bench, _ *jobdir.TrialResult) {
	t.Helper()
	if n := b.backend.Count(fake.OpCreate); n != 0 {
		t.Errorf("%d sandboxes were made", n)
	}
}

func (b *bench) has(t *testing.T, name, want string) {
	t.Helper()
	if got, err := os.ReadFile(filepath.Join(b.dir, filepath.FromSlash(name))); err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v; want %q", name, got, err, want)
	}
}

func (b *bench) lacks(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(b.dir, filepath.FromSlash(name))); err == nil {
			t.Errorf("%s is there", name)
		}
	}
}

func environmentRows() []row {
	image := func(ref, dockerfile string, force bool, want string) row {
		f := toml("[environment]\ndocker_image = \"" + ref + "\"\n")
		if dockerfile == "" {
			f.without("environment/Dockerfile").with("environment/data", "")
		}
		return row{
			name: fmt.Sprintf("row 38 image %q Dockerfile %q force %v", ref, dockerfile, force), task: f, fake: rules(granted), rewards: one,
			change: func(c *jobdir.TrialConfig) { c.Environment.ForceBuild = force },
			check: func(t *testing.T, b *bench, _ *jobdir.TrialResult) {
				img, got := specs(b)[0].Image, "image"
				if img.Build != nil && (img.Ref == "" || img.ForceBuild) {
					got = "build"
				}
				if got != want {
					t.Errorf("the sandbox is made of the %s, want %s: %+v", got, want, img)
				}
			},
		}
	}
	without := func(change func(*sandbox.Capabilities)) fake.Config {
		can := sandbox.Capabilities{Mounted: true, Build: true, NoNetwork: true, Allowlist: true, CPULimit: true, MemoryLimit: true}
		change(&can)
		return fake.Config{Capabilities: &can, Rules: []fake.Rule{granted}}
	}
	limits := func(cpus float64, memory int64) func(*testing.T, *bench, *jobdir.TrialResult) {
		return func(t *testing.T, b *bench, _ *jobdir.TrialResult) {
			if got := specs(b)[0].Resources; got.CPUs != cpus || got.MemoryMB != memory {
				t.Errorf("resources %+v, want %v and %d MiB", got, cpus, memory)
			}
		}
	}
	stored := func(storage int64) func(*testing.T, *bench, *jobdir.TrialResult) {
		return func(t *testing.T, b *bench, _ *jobdir.TrialResult) {
			if got := specs(b)[0].Resources.StorageMB; got != storage {
				t.Errorf("storage is %d MiB, want %d", got, storage)
			}
		}
	}
	const sized = "[environment]\ncpus = 2\nmemory_mb = 512\nstorage_mb = 100\n"
	const check = "[environment.healthcheck]\ncommand = \"well\"\ninterval_sec = 1.0\n"
	return []row{
		{name: "row 36 variable of the environment", task: toml("[environment.env]\nA = \"${MISSING}\"\n"), fake: rules(granted),
			exception: "ValueError", message: "Environment variable 'MISSING' not found", check: nothingMade},
		{name: "row 36 variable of the verifier", task: toml("[verifier.env]\nA = \"${MISSING}\"\n"), fake: rules(granted),
			exception: "ValueError", message: "Environment variable 'MISSING' not found", check: func(t *testing.T, b *bench, _ *jobdir.TrialResult) {
				if !ran(b, "/solution/solve.sh") || ran(b, "(/tests/test.sh)") {
					t.Error("the agent has not run, or the tests have")
				}
			}},
		image("", "yes", false, "build"), image("i", "yes", false, "image"), image("i", "", false, "image"),
		image("i", "yes", true, "build"), image("i", "", true, "image"),
		{name: "row 39 further files", task: toml("[environment]\ndocker_image = \"i\"\n").without("environment/Dockerfile").with("environment/data", "x"),
			fake: rules(fake.On("pwd", fake.Print("/app\n")), granted), rewards: one, check: func(t *testing.T, b *bench, _ *jobdir.TrialResult) {
				if !slices.ContainsFunc(b.backend.Calls(), func(c fake.Call) bool { return c.Op == fake.OpUpload && c.Path == "/app" }) {
					t.Error("nothing was uploaded to the working directory")
				}
			}},
		{name: "row 40 no definition", task: goodTask().without("environment/Dockerfile").with("environment/x", ""),
			exception: "FileNotFoundError", message: "has no environment definition", check: nothingMade},
		{name: "row 41 no network", task: toml("[environment]\nnetwork_mode = \"no-network\"\n"), fake: rules(granted), rewards: one,
			check: func(t *testing.T, b *bench, _ *jobdir.TrialResult) {
				if got := specs(b)[0].Network.Mode; got != sandbox.NetworkNone {
					t.Errorf("network %q", got)
				}
			}},
		{name: "row 42 allowlist", task: toml("[environment]\nnetwork_mode = \"allowlist\"\nallowed_hosts = [\"a\"]\n"), fake: without(func(c *sandbox.Capabilities) { c.Allowlist = false }),
			exception: "ValueError", message: "network_mode='allowlist' is not supported by fake environment.", check: nothingMade},
		{name: "row 42 GPUs", task: toml("[environment]\ngpus = 1\n"), exception: "RuntimeError", message: "Task requires 1 GPU(s) but fake environment does not support GPU allocation.", check: nothingMade},
		{name: "row 42 TPU", task: toml("[environment]\ntpu = {type = \"v5e\", topology = \"2x2\"}\n"), exception: "RuntimeError",
			message: "Task requires a TPU slice (type=v5e, topology=2x2) but fake environment does not support TPU allocation.", check: nothingMade},
		{name: "row 42 phase policy", task: toml("[agent]\nnetwork_mode = \"no-network\"\n"), fake: without(func(*sandbox.Capabilities) {}), exception: "ValueError",
			message: "[agent] agent phase network policy differs from the agent environment baseline, but this environment cannot change network policy after start.", check: nothingMade},
		{name: "row 42 equal phase policy", task: toml("[agent]\nnetwork_mode = \"public\"\n"), fake: without(func(*sandbox.Capabilities) {}), rewards: one},
		{name: "row 43 applied", task: toml(sized), fake: rules(granted), rewards: one, check: limits(2, 512)},
		{name: "row 43 override", task: toml(sized), fake: rules(granted), rewards: one, check: limits(1, 64),
			change: func(c *jobdir.TrialConfig) {
				c.Environment.OverrideCPUs, c.Environment.OverrideMemoryMB = new(1), new(64)
			}},
		{name: "row 43 storage", task: toml(sized), fake: without(func(c *sandbox.Capabilities) { c.StorageLimit = true }), rewards: one, check: stored(100)},
		{name: "row 43 storage by override", task: toml(sized), fake: without(func(c *sandbox.Capabilities) { c.StorageLimit = true }), rewards: one, check: stored(7),
			change: func(c *jobdir.TrialConfig) { c.Environment.OverrideStorageMB = new(7) }},
		{name: "row 43 storage that is not bounded", task: toml(sized), fake: without(func(*sandbox.Capabilities) {}), rewards: one, check: stored(0)},
		{name: "row 43 ignore", task: toml(sized), fake: rules(granted), rewards: one, check: limits(0, 0),
			change: func(c *jobdir.TrialConfig) {
				c.Environment.CPUEnforcementPolicy, c.Environment.MemoryEnforcementPolicy = "ignore", "ignore"
			}},
		{name: "row 43 request", task: toml(sized), exception: "ValueError", message: "fake environment does not support CPU resource requests.", check: nothingMade,
			change: func(c *jobdir.TrialConfig) { c.Environment.CPUEnforcementPolicy = "request" }},
		{name: "row 43 guarantee", task: toml(sized), exception: "ValueError", message: "fake environment does not support memory resource requests.", check: nothingMade,
			change: func(c *jobdir.TrialConfig) { c.Environment.MemoryEnforcementPolicy = "guarantee" }},
		{name: "row 43 limit without a value", task: goodTask(), exception: "ValueError", message: "CPU resource mode 'limit' requires a task value or numeric override.", check: nothingMade,
			change: func(c *jobdir.TrialConfig) { c.Environment.CPUEnforcementPolicy = "limit" }},
		{name: "row 49 start timeout", task: toml("[environment]\nbuild_timeout_sec = 0.2\n"), fake: fake.Config{Before: fake.HangAt(fake.OpCreate, 0)},
			exception: "EnvironmentStartTimeoutError", message: "Environment start timed out after 0.2 seconds"},
		{name: "row 50 failures in the start period", task: toml(check + "start_period_sec = 60.0\nretries = 1\n"), rewards: one,
			fake: rules(fake.On("well", fake.Each(fake.Exit(1), fake.Exit(1), fake.Exit(1), fake.Exit(0))), granted)},
		{name: "row 50 failures after it", task: toml(check + "retries = 3\n"), fake: rules(fake.On("well", fake.Exit(1)), granted),
			exception: "HealthcheckError", message: "Healthcheck failed after 3 consecutive retries: well"},
		{name: "row 50 hang", task: toml(check + "timeout_sec = 2.5\n"), fake: rules(fake.On("well", fake.Hang()), granted),
			exception: "RuntimeError", message: "Command timed out after 2 seconds"},
	}
}

func verifierRows() []row {
	write := func(file, content string) fake.Handler { return fake.Write("/logs/verifier/"+file, content) }
	return []row{
		{name: "row 52 exit code", task: goodTask(), fake: rules(fake.On("(/tests/test.sh", func(_ context.Context, p *fake.Process) (int, error) {
			return 9, p.Sandbox.WriteFile("/logs/verifier/reward.txt", []byte("0.5"), 0o644)
		})), rewards: "{'reward': 0.5}"},
		{name: "row 53 none", task: goodTask(), exception: "RewardFileNotFoundError", message: "No reward file found at "},
		{name: "row 53 empty", task: goodTask(), fake: rules(rewardRule("reward.txt", "")), exception: "RewardFileEmptyError", message: "Reward file is empty at "},
		{name: "row 53 unparsable", task: goodTask(), fake: rules(rewardRule("reward.txt", "0x1")), exception: "VerifierOutputParseError", message: "Failed to parse rewards from text file "},
		{name: "row 53 bad JSON beside a good text", task: goodTask(), fake: rules(fake.On("/tests/test.sh", write("reward.txt", "1"), write("reward.json", "{"))),
			exception: "VerifierOutputParseError", message: "Failed to parse rewards from JSON file "},
		{name: "row 54 both files", task: goodTask(), fake: rules(fake.On("/tests/test.sh", write("reward.txt", "0"), write("reward.json", `{"a": 2}`))), rewards: "{'a': 2}"},
		{name: "row 56 planted, single-step", task: goodTask(), fake: rules(fake.On("solve.sh", write("reward.json", `{"reward": 1}`)), rewardRule("reward.txt", "0")), rewards: "{'reward': 1}"},
		{name: "row 56 planted, multi-step", task: stepTask("[[steps]]\nname = \"one\"\n", "one"),
			fake: rules(emptying(), fake.On("solve.sh", write("reward.json", `{"reward": 1}`)), rewardRule("reward.txt", "0")), rewards: "{'reward': 0.0}"},
		{name: "row 56 planted, separate", task: toml("[verifier]\nenvironment_mode = \"separate\"\n").with("tests/Dockerfile", "FROM x\n"),
			fake: rules(emptying(), fake.On("solve.sh", write("reward.json", `{"reward": 1}`)), rewardRule("reward.txt", "0")), rewards: "{'reward': 0.0}"},
		{name: "row 57 user", task: toml("[verifier]\nuser = 1234\n"), fake: rules(fake.On("(/tests/test.sh", func(_ context.Context, p *fake.Process) (int, error) {
			return 0, p.Sandbox.WriteFile("/logs/verifier/reward.txt", []byte(p.User), 0o644)
		})), rewards: "{'reward': 1234.0}"},
		{name: "row 58 variables", task: stepTask("[verifier.env]\nA = \"task\"\nB = \"task\"\nC = \"${ON_HOST}\"\n[[steps]]\nname = \"one\"\n[steps.verifier.env]\nA = \"step\"\nB = \"step\"\n", "one"),
			change: func(c *jobdir.TrialConfig) { c.Verifier.Env = jobdir.EnvOf("A", "job") },
			fake: rules(emptying(), fake.On("(/tests/test.sh", func(_ context.Context, p *fake.Process) (int, error) {
				text := fmt.Sprintf(`{"right": %d}`, boolInt(p.Env["A"] == "job" && p.Env["B"] == "step" && p.Env["C"] == "host value"))
				return 0, p.Sandbox.WriteFile("/logs/verifier/reward.json", []byte(text), 0o644)
			})), rewards: "{'right': 1.0}"},
		{name: "row 59 verifier", task: toml("[verifier]\ntimeout_sec = 1.0\n"), fake: rules(fake.On("test.sh", write("reward.txt", "1"), fake.Hang())),
			exception: "VerifierTimeoutError", message: "Verifier execution timed out after 1.0 seconds"},
		{name: "row 59 agent", task: toml("[agent]\ntimeout_sec = 1.0\n"), fake: rules(fake.On("solve.sh", fake.Hang()), granted),
			exception: "AgentTimeoutError", message: "Agent execution timed out after 1.0 seconds", rewards: one},
		{name: "row 60 disabled", task: goodTask(), fake: rules(granted), change: func(c *jobdir.TrialConfig) { c.Verifier.Disable = true },
			check: func(t *testing.T, b *bench, res *jobdir.TrialResult) {
				if res.Verifier != nil || res.VerifierResult != nil || ran(b, "/tests/test.sh") {
					t.Errorf("verifier %+v, %+v", res.Verifier, res.VerifierResult)
				}
			}},
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func separateRows() []row {
	separate := func(artifacts string) taskFiles {
		return toml(artifacts+"[verifier]\nenvironment_mode = \"separate\"\n").without("tests/test.sh").with("tests/Dockerfile", "FROM x\n")
	}
	sees := func(file string) func(*fake.Process) int {
		return func(p *fake.Process) int { _, err := p.Sandbox.ReadFile(file); return boolInt(err == nil) }
	}
	report := fake.On("(/tests/test.sh", func(_ context.Context, p *fake.Process) (int, error) {
		text := fmt.Sprintf(`{"declared": %d, "convention": %d, "other": %d}`, sees("/app/out.txt")(p), sees("/logs/artifacts/kept")(p), sees("/app/secret")(p))
		return 0, p.Sandbox.WriteFile("/logs/verifier/reward.json", []byte(text), 0o644)
	})
	noDirs := fake.Rule{Match: func(c sandbox.Command) bool { return len(c.Argv) > 0 && c.Argv[0] == "test" }, Do: fake.Exit(1)}
	agent := fake.On("solve.sh", fake.Write("/app/out.txt", "made"), fake.Write("/logs/artifacts/kept", ""), fake.Write("/app/secret", ""))
	return []row{
		{name: "row 61 what the verifier sees", task: separate("artifacts = [\"/app/out.txt\"]\n"), fake: rules(emptying(), agent, noDirs, report),
			rewards: "{'declared': 1, 'convention': 1, 'other': 0}", check: func(t *testing.T, b *bench, _ *jobdir.TrialResult) {
				var ops []string
				for _, c := range b.backend.Calls() {
					if c.Op == fake.OpCreate || c.Op == fake.OpDestroy {
						ops = append(ops, string(c.Op)+" "+c.Sandbox)
					}
				}
				if want := []string{"create a-task__1234567", "destroy a-task__1234567", "create a-task__1234567__verifier__trial", "destroy a-task__1234567__verifier__trial"}; !slices.Equal(ops, want) {
					t.Errorf("sandboxes %q, want the agent's gone before the verifier's comes", ops)
				}
				if n := b.backend.MostLive(); n != 1 {
					t.Errorf("%d sandboxes at once", n)
				}
			}},
		{name: "row 61 image without tests", task: separate(""), fake: rules(emptying(), fake.On("(/tests/test.sh", fake.Exit(127))), exception: "RewardFileNotFoundError"},
		{name: "row 61 missing parent directory", task: separate("artifacts = [\"/app/out.txt\"]\n"),
			fake: fake.Config{Rules: []fake.Rule{emptying(), agent, noDirs, report}, Before: func(_ context.Context, c fake.Call) error {
				if c.Op == fake.OpUpload && c.Path == path.Dir("/app/out.txt") && strings.Contains(c.Sandbox, "__verifier__") {
					return fmt.Errorf("no such directory: %s", c.Path)
				}
				return nil
			}}, exception: "RuntimeError", message: "uploading artifact \"/app/out.txt\""},
		{name: "row 62 copied environment with an image", task: separate("").with("task.toml", "[environment]\ndocker_image = \"i\"\n[verifier]\nenvironment_mode = \"separate\"\n"),
			fake: rules(emptying(), granted), rewards: one, change: func(c *jobdir.TrialConfig) { c.Environment.ForceBuild = true },
			check: func(t *testing.T, b *bench, _ *jobdir.TrialResult) {
				if img := specs(b)[1].Image; img.Ref != "i" || img.ForceBuild {
					t.Errorf("the verifier's sandbox is made of %+v", img)
				}
			}},
	}
}

func stepRows() []row {
	const first = "[[steps]]\nname = \"one\"\n"
	const second = "[[steps]]\nname = \"two\"\n"
	two := func(one, more string) taskFiles { return stepTask(first+one+second+more, "one", "two") }
	steps := func(n int, last string) func(*testing.T, *bench, *jobdir.TrialResult) {
		return func(t *testing.T, _ *bench, res *jobdir.TrialResult) {
			got := ""
			if len(res.StepResults) > 0 && res.StepResults[len(res.StepResults)-1].ExceptionInfo != nil {
				got = res.StepResults[len(res.StepResults)-1].ExceptionInfo.Type
			}
			if len(res.StepResults) != n || got != last {
				t.Errorf("%d steps, the last one with %q; want %d and %q", len(res.StepResults), got, n, last)
			}
		}
	}
	at := fake.On("pwd", fake.Print("/app\n"))
	return []row{
		{name: "row 63 tests are merged", task: two("", "").with("tests/helper.sh", "task").with("tests/shared.sh", "shared").with("steps/one/tests/helper.sh", "one").with("steps/one/tests/left.sh", ""),
			fake: rules(emptying(), fake.On("(/tests/test.sh", func(_ context.Context, p *fake.Process) (int, error) {
				helper, _ := p.Sandbox.ReadFile("/tests/helper.sh")
				shared, _ := p.Sandbox.ReadFile("/tests/shared.sh")
				_, err := p.Sandbox.ReadFile("/tests/left.sh")
				text := fmt.Sprintf(`{"%s %s %v": 1}`, helper, shared, err == nil)
				return 0, p.Sandbox.WriteFile("/logs/verifier/reward.json", []byte(text), 0o644)
			})), rewards: "{'one shared true': 0.5, 'task shared false': 0.5}"},
		{name: "row 64 mean", task: two("", ""), fake: rules(emptying(), rewardByTurn("reward.json", `{"reward": 1, "x": 0.5}`, `{"reward": 0.25}`)), rewards: "{'reward': 0.625, 'x': 0.25}"},
		{name: "row 64 final", task: stepTask("multi_step_reward_strategy = \"final\"\n"+twoSteps, "one", "two"),
			fake: rules(emptying(), rewardByTurn("reward.json", `{"reward": 1, "x": 0.5}`, `{"reward": 0.25}`)), rewards: "{'reward': 0.25}"},
		{name: "row 65 min_reward", task: two("min_reward = 1.5\n", ""), fake: rules(emptying(), granted), rewards: one, check: steps(1, "")},
		{name: "row 65 min_reward of a missing key", task: two("min_reward = {speed = 0.0}\n", ""), fake: rules(emptying(), granted), rewards: one, check: steps(1, "")},
		{name: "row 66 failed set-up", task: two("", "").with("steps/one/workdir/setup.sh", ""), fake: rules(at, fake.On("bash /app/setup.sh", fake.Exit(7)), granted),
			check: func(t *testing.T, b *bench, res *jobdir.TrialResult) {
				steps(1, "RuntimeError")(t, b, res)
				if m := res.StepResults[0].ExceptionInfo.Message; m != "Step 'one' setup.sh exited with code 7: None" || ran(b, "solve.sh") {
					t.Errorf("message %q; the agent ran: %v", m, ran(b, "solve.sh"))
				}
			}},
		{name: "row 67 set-up as the agent's user", task: two("[steps.agent]\nuser = \"worker\"\n[steps.healthcheck]\ncommand = \"well\"\n", "").with("steps/one/workdir/setup.sh", ""),
			fake: rules(emptying(), at, granted), rewards: one, check: func(t *testing.T, b *bench, _ *jobdir.TrialResult) {
				var order []string
				for _, c := range b.backend.Calls() {
					switch {
					case c.Op == fake.OpUpload && c.Path == "/app":
						order = append(order, "upload")
					case c.Op == fake.OpExec && (c.Command.Shell == "bash /app/setup.sh" || c.Command.Shell == "well"):
						order = append(order, c.Command.Shell+" as "+c.Command.User)
					}
				}
				if want := []string{"upload", "bash /app/setup.sh as worker", "well as worker"}; !slices.Equal(order, want) {
					t.Errorf("%q, want %q", order, want)
				}
			}},
		{name: "row 68 agent's time is up", task: two("[steps.agent]\ntimeout_sec = 1.0\n", ""),
			fake: rules(emptying(), fake.On("solve.sh", fake.Each(fake.Hang(), fake.Exit(0))), granted), rewards: one,
			check: func(t *testing.T, b *bench, res *jobdir.TrialResult) {
				steps(2, "")(t, b, res)
				if s := res.StepResults[0]; s.ExceptionInfo == nil || s.ExceptionInfo.Type != "AgentTimeoutError" || s.VerifierResult == nil {
					t.Errorf("the first step: %+v", s)
				}
			}},
		{name: "row 69 verifier's time is up", task: two("[steps.verifier]\ntimeout_sec = 1.0\n", ""), fake: rules(emptying(), fake.On("(/tests/test.sh", fake.Hang())),
			check: func(t *testing.T, b *bench, res *jobdir.TrialResult) {
				steps(1, "TimeoutError")(t, b, res)
				if m := res.StepResults[0].ExceptionInfo.Message; m != "" {
					t.Errorf("message %q, want none", m)
				}
			}},
		{name: "row 70 archive", task: two("", ""), fake: rules(emptying(), fake.On("solve.sh", fake.Write("/logs/agent/trace", "x"), fake.Write("/logs/artifacts/a", "x")), granted), rewards: one,
			check: func(t *testing.T, b *bench, _ *jobdir.TrialResult) {
				for _, step := range []string{"one", "two"} {
					b.has(t, "steps/"+step+"/agent/trace", "x")
					b.has(t, "steps/"+step+"/artifacts/a", "x")
					b.has(t, "steps/"+step+"/verifier/reward.txt", "1")
				}
				b.lacks(t, "agent", "verifier", "artifacts")
			}},
		{name: "row 71 separate steps", task: two("[steps.verifier]\nenvironment_mode = \"separate\"\n", "[steps.verifier]\nenvironment_mode = \"separate\"\n").with("tests/Dockerfile", "FROM x\n"),
			fake: rules(emptying(), granted), rewards: one, check: func(t *testing.T, b *bench, _ *jobdir.TrialResult) {
				var ops []string
				for _, c := range b.backend.Calls() {
					if c.Op == fake.OpCreate || c.Op == fake.OpDestroy {
						ops = append(ops, string(c.Op)+strings.TrimPrefix(c.Sandbox, "a-task__1234567"))
					}
				}
				want := []string{"create", "create__verifier__one", "destroy__verifier__one", "destroy", "create__verifier__two", "destroy__verifier__two"}
				if !slices.Equal(ops, want) {
					t.Errorf("%q, want %q", ops, want)
				}
			}},
		{name: "row 72 artifacts of steps", task: stepTask("artifacts = [\"/t\"]\n"+first+"artifacts = [\"/s\"]\n"+second, "one", "two"), fake: rules(emptying(), granted), rewards: one,
			change: func(c *jobdir.TrialConfig) { c.Artifacts = nil },
			check: func(t *testing.T, b *bench, _ *jobdir.TrialResult) {
				for step, want := range map[string]string{"one": "/logs/artifacts /t /s", "two": "/logs/artifacts /t"} {
					if got := manifest(t, b, "steps/"+step+"/artifacts/manifest.json", "source"); got != want {
						t.Errorf("step %s collects %s, want %s", step, got, want)
					}
				}
			}},
	}
}

// manifest lists one member of a manifest's rows.
func manifest(t *testing.T, b *bench, name, member string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := value.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, entry := range doc.(value.List) {
		v, _ := entry.(*value.Object).Get(member)
		all = append(all, string(v.(value.Str)))
	}
	return strings.Join(all, " ")
}

func artifactRows() []row {
	dirs := []fake.Rule{
		{Match: func(c sandbox.Command) bool { return slices.Equal(c.Argv, []string{"test", "-d", "/data/tree"}) }, Do: fake.Exit(0)},
		{Match: func(c sandbox.Command) bool { return len(c.Argv) > 0 && c.Argv[0] == "test" }, Do: fake.Exit(1)},
		granted,
	}
	columns := func(want ...string) func(*testing.T, *bench, *jobdir.TrialResult) {
		return func(t *testing.T, b *bench, _ *jobdir.TrialResult) {
			for i, member := range []string{"source", "destination", "type", "status"} {
				if got := manifest(t, b, "artifacts/manifest.json", member); got != want[i] {
					t.Errorf("%s: %s, want %s", member, got, want[i])
				}
			}
		}
	}
	return []row{
		{name: "row 73 manifest", rewards: one,
			task: toml("artifacts = [\"/data/out.txt\", {source = \"/data/tree\", destination = \"kept\", exclude = [\"*.tmp\"]}, \"/nowhere.txt\"]\n"),
			fake: fake.Config{Files: map[string]string{"/data/out.txt": "out", "/data/tree/a": "a", "/data/tree/b.tmp": "b"}, Rules: dirs},
			check: func(t *testing.T, b *bench, res *jobdir.TrialResult) {
				columns("/logs/artifacts /data/out.txt /data/tree /nowhere.txt", "artifacts artifacts/out.txt artifacts/kept artifacts/nowhere.txt",
					"directory file directory file", "empty ok ok failed")(t, b, res)
				b.has(t, "artifacts/out.txt", "out")
				b.has(t, "artifacts/kept/a", "a")
				b.lacks(t, "artifacts/kept/b.tmp")
			}},
		{name: "row 74 explicit convention", task: toml("artifacts = [\"/nowhere.txt\", \"/logs/artifacts/\"]\n"), fake: rules(dirs...), rewards: one,
			check: columns("/nowhere.txt /logs/artifacts/", "artifacts/nowhere.txt artifacts", "file directory", "failed empty")},
		{name: "row 75 nothing", task: goodTask(), fake: rules(granted), rewards: one, check: columns("/logs/artifacts", "artifacts", "directory", "empty")},
	}
}
