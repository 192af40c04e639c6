package trial_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

func stepTask(toml string, steps ...string) taskFiles {
	f := goodTask().without("instruction.md").without("solution/solve.sh").with("task.toml", toml)
	for _, name := range steps {
		f.with("steps/"+name+"/instruction.md", "Do "+name+".\n").with("steps/"+name+"/solution/solve.sh", name)
	}
	return f
}

// rewardByTurn writes one reward file per verification.
func rewardByTurn(file string, contents ...string) fake.Rule {
	var handlers []fake.Handler
	for _, content := range contents {
		handlers = append(handlers, fake.Write("/logs/verifier/"+file, content))
	}
	return fake.On("/tests/test.sh", fake.Each(handlers...))
}

// emptying does what the commands that empty directories do.
func emptying() fake.Rule {
	return fake.On("-mindepth 1", func(_ context.Context, p *fake.Process) (int, error) {
		for _, dir := range []string{"/logs/verifier", "/tests"} {
			if !strings.Contains(p.Command.Shell, " "+dir+" ") {
				continue
			}
			entries, err := os.ReadDir(p.Sandbox.Path(dir))
			if err != nil {
				return 0, nil
			}
			for _, e := range entries {
				if err := p.Sandbox.Remove(dir + "/" + e.Name()); err != nil {
					return 0, err
				}
			}
		}
		return 0, nil
	})
}

const twoSteps = "[[steps]]\nname = \"one\"\n[[steps]]\nname = \"two\"\n"

func TestSteps(t *testing.T) {
	t.Parallel()
	b := newBench(t, stepTask(twoSteps, "one", "two").with("steps/two/tests/helper.sh", "two"), fake.Config{Rules: []fake.Rule{
		emptying(),
		fake.On("/solution/solve.sh", fake.Write("/logs/agent/trace", "x")),
		rewardByTurn("reward.json", `{"reward": 1, "x": 0.5}`, `{"reward": 0.25}`),
	}})
	res := b.run(t)
	if got := rewardsText(res); got != "{'reward': 0.625, 'x': 0.25}" || res.ExceptionInfo != nil {
		t.Errorf("rewards %s, exception %+v", got, res.ExceptionInfo)
	}
	if len(res.StepResults) != 2 || res.AgentResult != nil || res.Verifier != nil || res.StepResults[1].Verifier == nil {
		t.Errorf("steps %+v", res.StepResults)
	}
	for _, name := range []string{
		"steps/one/agent/trace", "steps/two/agent/trace", "steps/one/verifier/reward.json", "steps/two/verifier/reward.json",
		"steps/one/artifacts/manifest.json", "steps/two/verifier/test-stdout.txt",
	} {
		if _, err := os.Stat(filepath.Join(b.dir, filepath.FromSlash(name))); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"agent", "verifier", "artifacts"} {
		if _, err := os.Stat(filepath.Join(b.dir, name)); err == nil {
			t.Errorf("%s is still in the trial's directory", name)
		}
	}
}

func TestStepFaults(t *testing.T) {
	t.Parallel()
	good := rewardByTurn("reward.txt", "1")
	for _, c := range []struct {
		name    string
		task    taskFiles
		rules   []fake.Rule
		ran     int
		step    string // exception type of the last step that ran
		trial   string // exception type of the trial
		rewards string
	}{
		{name: "set-up fails", task: stepTask(twoSteps, "one", "two").with("steps/one/workdir/setup.sh", ""),
			rules: []fake.Rule{fake.On("pwd", fake.Print("/app\n")), fake.On("bash /app/setup.sh", fake.Exit(7)), good},
			ran:   1, step: "RuntimeError", rewards: "no result"},
		{name: "unhealthy", task: stepTask(twoSteps+"[steps.healthcheck]\ncommand = \"well\"\ninterval_sec = 0.0\nretries = 1\n", "one", "two"),
			rules: []fake.Rule{fake.On("well", fake.Exit(1)), good},
			ran:   2, step: "HealthcheckError", rewards: "{'reward': 1.0}"},
		{name: "hanging healthcheck", task: stepTask(twoSteps+"[steps.healthcheck]\ncommand = \"well\"\ntimeout_sec = 1.0\n", "one", "two"),
			rules: []fake.Rule{fake.On("well", fake.Hang()), good},
			ran:   2, trial: "RuntimeError", rewards: "no result"},
		{name: "agent too slow", task: stepTask(twoSteps+"[steps.agent]\ntimeout_sec = 1.0\n", "one", "two"),
			rules: []fake.Rule{fake.On("solve.sh", fake.Each(fake.Exit(0), fake.Hang())), good},
			ran:   2, step: "AgentTimeoutError", rewards: "{'reward': 1.0}"},
		{name: "no solution", task: stepTask(twoSteps, "one", "two").without("steps/two/solution/solve.sh").with("steps/two/solution/other", ""),
			rules: []fake.Rule{good},
			ran:   2, step: "FileNotFoundError", rewards: "{'reward': 1.0}"},
		{name: "verifier too slow", task: stepTask(twoSteps, "one", "two"),
			rules: []fake.Rule{fake.On("test.sh", fake.Hang())},
			ran:   1, step: "TimeoutError", rewards: "no result"},
		{name: "below min_reward", task: stepTask("[[steps]]\nname = \"one\"\nmin_reward = 1.5\n[[steps]]\nname = \"two\"\n", "one", "two"),
			rules: []fake.Rule{good}, ran: 1, rewards: "{'reward': 1.0}"},
		{name: "min_reward of a missing key", task: stepTask("[[steps]]\nname = \"one\"\nmin_reward = {speed = 0.1}\n[[steps]]\nname = \"two\"\n", "one", "two"),
			rules: []fake.Rule{good}, ran: 1, rewards: "{'reward': 1.0}"},
		{name: "final strategy", task: stepTask("multi_step_reward_strategy = \"final\"\n"+twoSteps, "one", "two"),
			rules: []fake.Rule{emptying(), rewardByTurn("reward.txt", "1", "0.5")}, ran: 2, rewards: "{'reward': 0.5}"},
		{name: "hostile name", task: stepTask("[[steps]]\nname = \"../../x\"\n", "one"),
			rules: []fake.Rule{good}, trial: "FileNotFoundError", rewards: "no result"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c.task, fake.Config{Rules: c.rules})
			res := b.runTimed(t)
			if len(res.StepResults) != c.ran || exceptionType(res) != c.trial || rewardsText(res) != c.rewards {
				t.Errorf("%d steps, exception %q, rewards %s; want %d, %q, %s",
					len(res.StepResults), exceptionType(res), rewardsText(res), c.ran, c.trial, c.rewards)
			}
			if c.ran == 0 || len(res.StepResults) == 0 {
				return
			}
			last := res.StepResults[len(res.StepResults)-1]
			got := ""
			if last.ExceptionInfo != nil {
				got = last.ExceptionInfo.Type
			}
			if got != c.step {
				t.Errorf("the last step has exception %q, want %q", got, c.step)
			}
			if c.step == "TimeoutError" && last.ExceptionInfo.Message != "" {
				t.Errorf("message %q, want none", last.ExceptionInfo.Message)
			}
		})
	}
}

func TestPlantedRewardOfAnEarlierStepIsCleared(t *testing.T) {
	t.Parallel()
	b := newBench(t, stepTask(twoSteps, "one", "two"), fake.Config{Rules: []fake.Rule{
		emptying(),
		fake.On("solve.sh", fake.Write("/logs/verifier/reward.txt", "1")),
		fake.On("test.sh", fake.Exit(0)),
	}})
	res := b.run(t)
	if len(res.StepResults) != 1 || res.StepResults[0].ExceptionInfo == nil || res.StepResults[0].ExceptionInfo.Type != "RewardFileNotFoundError" {
		t.Errorf("steps %+v", res.StepResults)
	}
}

func TestSeparateVerifier(t *testing.T) {
	t.Parallel()
	toml := "artifacts = [\"/app/out.txt\"]\n[verifier]\nenvironment_mode = \"separate\"\n"
	b := newBench(t, goodTask().without("tests/test.sh").with("task.toml", toml).with("tests/Dockerfile", "FROM debian\n"), fake.Config{
		Rules: []fake.Rule{
			emptying(),
			fake.On("solve.sh", fake.Write("/app/out.txt", "made"), fake.Write("/app/secret.txt", "not listed"), fake.Write("/logs/verifier/reward.json", "{}")),
			{Match: func(c sandbox.Command) bool { return len(c.Argv) > 0 && c.Argv[0] == "test" }, Do: fake.Exit(1)},
			fake.On("test.sh", func(_ context.Context, p *fake.Process) (int, error) {
				if len(p.Command.Argv) > 0 {
					return 0, nil // making it executable
				}
				out, err := p.Sandbox.ReadFile("/app/out.txt")
				_, leaked := p.Sandbox.ReadFile("/app/secret.txt")
				score := "0"
				if err == nil && string(out) == "made" && leaked != nil {
					score = "1"
				}
				return 0, p.Sandbox.WriteFile("/logs/verifier/reward.txt", []byte(score), 0o644)
			}),
		},
	})
	res := b.run(t)
	if got := rewardsText(res); got != "{'reward': 1.0}" || res.ExceptionInfo != nil {
		t.Errorf("rewards %s, exception %+v", got, res.ExceptionInfo)
	}
	var names []string
	for _, call := range b.backend.Calls() {
		if call.Op == fake.OpCreate || call.Op == fake.OpDestroy {
			names = append(names, fmt.Sprint(call.Op, " ", call.Sandbox))
		}
	}
	want := []string{
		"create a-task__1234567", "destroy a-task__1234567",
		"create a-task__1234567__verifier__trial", "destroy a-task__1234567__verifier__trial",
	}
	if !slices.Equal(names, want) {
		t.Errorf("sandboxes %q, want %q", names, want)
	}
}
