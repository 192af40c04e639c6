package taskcheck_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/job/taskcheck"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// got is a trial that was run: its reward as text, "" for none, or "never" for
// one whose environment could not be made.
func got(kind taskcheck.Kind, text string, exception string) taskcheck.Trial {
	start := jobdir.UTC(time.Unix(100, 0))
	end := jobdir.UTC(time.Unix(102, 0))
	r := &jobdir.TrialResult{TrialName: string(kind) + "__" + text, AgentExecution: &jobdir.Timing{StartedAt: &start, FinishedAt: &end}}
	switch text {
	case "":
	case "never":
		r.AgentExecution = nil
	default:
		rewards := &reward.Rewards{}
		for i, part := range strings.Split(text, ",") {
			x, err := value.ParseFloat(part)
			if err != nil {
				panic(err)
			}
			name := "reward"
			if i > 0 {
				name = fmt.Sprint("other", i)
			}
			rewards.Set(name, x)
		}
		r.VerifierResult = &jobdir.VerifierResult{Rewards: rewards}
	}
	if exception != "" {
		r.ExceptionInfo = &jobdir.ExceptionInfo{Type: exception, Message: "because\nof that"}
	}
	return taskcheck.Trial{Role: taskcheck.Role{Kind: kind}, Name: r.TrialName, Result: r}
}

func reference(nop string, oracles ...string) []taskcheck.Trial {
	var all []taskcheck.Trial
	for _, text := range append(oracles, nop) {
		exception := ""
		if text == "" {
			exception = "RewardFileNotFoundError"
		}
		all = append(all, got(taskcheck.KindOracle, text, exception))
	}
	all[len(all)-1].Role.Kind = taskcheck.KindNop
	return all
}

// judged is the checks as lines: "name status".
func judged(r *taskcheck.Report) string {
	var lines []string
	for _, c := range r.Checks {
		if (c.Status == taskcheck.Pass || c.Status == taskcheck.Skip) != (c.Fix == "") {
			lines = append(lines, "a fix, or none: "+c.Fix)
		}
		lines = append(lines, fmt.Sprintf("%s %s", c.Name, c.Status))
	}
	return strings.Join(lines, ", ")
}

func TestJudgeReference(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		goal      float64
		trials    []taskcheck.Trial
		want      string
		unusable  bool
		notSolved bool
	}{
		{name: "good", goal: 1, trials: reference("0", "1", "1", "1"), want: "oracle pass, nop pass, repeats pass"},
		{name: "a goal of its own", goal: 0.75, trials: reference("0", "1,0.5", "1,0.5"), want: "oracle fail, nop pass, repeats pass", notSolved: true},
		{name: "unsolved", goal: 1, trials: reference("0", "0", "0"), want: "oracle fail, nop pass, repeats pass", notSolved: true},
		{name: "not always solved", goal: 1, trials: reference("0", "1", "0"), want: "oracle fail, nop pass, repeats fail", notSolved: true},
		{name: "once", goal: 1, trials: reference("0", "1"), want: "oracle pass, nop pass, repeats skip"},
		{name: "for nothing", goal: 1, trials: reference("0.25", "1", "1"), want: "oracle pass, nop fail, repeats pass"},
		{name: "nop without a reward", goal: 1, trials: reference("", "1", "1"), want: "oracle pass, nop warn, repeats pass"},
		{name: "never a reward, on purpose", goal: 0, trials: reference("", "", ""), want: "oracle warn, nop warn, repeats pass"},
		{name: "never a reward", goal: 1, trials: reference("", "", ""), want: "oracle fail, nop warn, repeats pass", notSolved: true},
		{name: "nan", goal: 1, trials: reference("nan", "nan", "nan"), want: "oracle fail, nop fail, repeats pass", notSolved: true},
		{name: "no environment", goal: 1, trials: []taskcheck.Trial{got(taskcheck.KindOracle, "never", "RuntimeError"), got(taskcheck.KindNop, "0", "")}, want: "oracle fail", unusable: true, notSolved: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := taskcheck.NewReport("x")
			o := taskcheck.Outcome{Goal: tt.goal, Reference: tt.trials}
			if usable := taskcheck.JudgeReference(r, o); usable == tt.unusable {
				t.Errorf("usable %v", usable)
			}
			if got := judged(r); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if r.Passed == strings.Contains(tt.want, "fail") {
				t.Errorf("passed %v with %s", r.Passed, tt.want)
			}
			if taskcheck.Solved(o) == tt.notSolved {
				t.Errorf("solved %v", taskcheck.Solved(o))
			}
		})
	}
}

func TestJudgeReferenceTells(t *testing.T) {
	t.Parallel()
	r := taskcheck.NewReport("x")
	trials := reference("0", "0.5", "0.5")
	trials[1].ExitCode = "7"
	trials[0].ExitCode = "7"
	taskcheck.JudgeReference(r, taskcheck.Outcome{Goal: 1, Reference: trials})
	if m := r.Checks[0].Message; m != "the solution gets 0.5 instead of 1.0, and its script exits with 7" {
		t.Errorf("got %q", m)
	}
	if want := (taskcheck.Phase{Name: "agent", Trials: 2, Median: 2, Longest: 2}); len(r.Phases) != 1 || r.Phases[0] != want {
		t.Errorf("phases %+v", r.Phases)
	}
	without := taskcheck.NewReport("x")
	taskcheck.JudgeReference(without, taskcheck.Outcome{Goal: 1, Reference: reference("0", "", "")})
	if m := without.Checks[0].Message; m != "the solution gets no reward (RewardFileNotFoundError: because) instead of 1.0" {
		t.Errorf("got %q", m)
	}
}

func TestJudgeNetwork(t *testing.T) {
	t.Parallel()
	offline := func(text string) *taskcheck.Trial {
		t := got(taskcheck.KindOffline, text, "")
		return &t
	}
	for _, tt := range []struct {
		name    string
		outcome taskcheck.Outcome
		status  taskcheck.Status
		message string
	}{
		{"none as it is", taskcheck.Outcome{Reach: taskcheck.ReachNone}, taskcheck.Pass, "the verifier has no network as it is"},
		{"not tried", taskcheck.Outcome{Reach: taskcheck.ReachTrial, NoOffline: "not tried"}, taskcheck.Skip, "not tried"},
		{"verifier alone", taskcheck.Outcome{Reach: taskcheck.ReachVerifier, Offline: offline("1")}, taskcheck.Pass, "verification gives the same result offline"},
		{"whole trial", taskcheck.Outcome{Reach: taskcheck.ReachTrial, Offline: offline("1")}, taskcheck.Pass, "solution and verification give the same result offline"},
		{"verifier needs it", taskcheck.Outcome{Reach: taskcheck.ReachVerifier, Offline: offline("0")}, taskcheck.Warn, "the tests need the network: without it the solution gets 0.0"},
		{"one of them needs it", taskcheck.Outcome{Reach: taskcheck.ReachTrial, Offline: offline("")}, taskcheck.Warn, "the solution or the tests need the network"},
		{"cannot start", taskcheck.Outcome{Reach: taskcheck.ReachVerifier, Offline: offline("never")}, taskcheck.Skip, "could not be tried"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.outcome.Reference = reference("0", "1")
			r := taskcheck.NewReport("x")
			taskcheck.JudgeNetwork(r, tt.outcome)
			if c := r.Checks[0]; c.Status != tt.status || !strings.HasPrefix(c.Message, tt.message) {
				t.Errorf("got %+v", c)
			}
		})
	}
}

func TestJudgeChannel(t *testing.T) {
	t.Parallel()
	attempt := func(name, text string, noticed ...string) taskcheck.Trial {
		tr := got(taskcheck.KindChannel, text, "")
		tr.Role.Attempt, tr.Suspicions = name, noticed
		tr.Output = "proctor-attempt done write\nnoise\nproctor-attempt denied link\n"
		return tr
	}
	trials := []taskcheck.Trial{
		attempt("reward-json", "0.8125", "seen"), attempt("daemon", "0.8125"), attempt("reward-text", "0"), attempt("tests-conftest", "1"), attempt("reward-locked", ""),
	}
	r := taskcheck.NewReport("x")
	taskcheck.JudgeChannel(r, taskcheck.Outcome{Reference: reference("0", "1"), Channel: trials})
	if c := r.Checks[0]; c.Status != taskcheck.Warn || !strings.HasPrefix(c.Message, "open: 3 of 5 attempts of an agent changed the reward, 2 of them unnoticed") || !strings.Contains(c.Fix, "--sealed") {
		t.Errorf("%+v", c)
	}
	var effects []taskcheck.Effect
	for _, a := range r.Tried {
		effects = append(effects, a.Effect)
		if !slices.Equal(a.Done, []string{"write"}) || !slices.Equal(a.Denied, []string{"link"}) || a.Description == "" {
			t.Errorf("%+v", a)
		}
	}
	want := []taskcheck.Effect{taskcheck.EffectForged, taskcheck.EffectForged, taskcheck.EffectNone, taskcheck.EffectChanged, taskcheck.EffectLost}
	if !slices.Equal(effects, want) || !r.Passed || r.Worst() != taskcheck.Warn {
		t.Errorf("effects %v, want %v", effects, want)
	}
	closed := taskcheck.NewReport("x")
	taskcheck.JudgeChannel(closed, taskcheck.Outcome{Reference: reference("0", "1"), Channel: trials[2:3]})
	if closed.Worst() != taskcheck.Pass {
		t.Errorf("%+v", closed.Checks)
	}
	skipped := taskcheck.NewReport("x")
	taskcheck.JudgeChannel(skipped, taskcheck.Outcome{})
	if skipped.Checks[0].Status != taskcheck.Skip {
		t.Errorf("%+v", skipped.Checks)
	}
}

// The n-th trial that a plan has of a task is that of the n-th role.
func TestPlanFollowsRoles(t *testing.T) {
	t.Parallel()
	roles := slices.Concat(taskcheck.Reference(2), taskcheck.Offline(), taskcheck.Channel())
	cfg := jobdir.NewConfig(time.Unix(0, 0))
	cfg.Agents = taskcheck.Agents(roles)
	tasks := []jobdir.Task{{Config: jobdir.TaskConfig{Path: new("a")}}, {Config: jobdir.TaskConfig{Path: new("b")}}}
	planned, err := job.Plan(cfg, [16]byte{}, tasks, func(int) int { return 0 })
	if err != nil || len(planned) != 2*len(roles) {
		t.Fatal(len(planned), err)
	}
	for i, p := range planned {
		role, want := roles[i%len(roles)], map[taskcheck.Kind]string{
			taskcheck.KindOracle: "oracle", taskcheck.KindOffline: "oracle", taskcheck.KindNop: "nop", taskcheck.KindChannel: "command",
		}
		if *p.Agent.Name != want[role.Kind] || *p.Task.Path != []string{"a", "b"}[i/len(roles)] {
			t.Errorf("trial %d: agent %s on %s for %+v", i, *p.Agent.Name, *p.Task.Path, role)
		}
		if role.Kind == taskcheck.KindChannel {
			run, _ := p.Agent.Kwargs.Get("run")
			call := "\n" + strings.ReplaceAll(role.Attempt, "-", "_") + "\n"
			if text := string(run.(value.Str)); !strings.HasSuffix(text, call) || !strings.Contains(text, strings.TrimSpace(call)+"()") {
				t.Errorf("attempt %s does not call its function", role.Attempt)
			}
		}
	}
}

func TestTakeNetwork(t *testing.T) {
	t.Parallel()
	const steps = "[[steps]]\nname = \"a\"\n[[steps]]\nname = \"b\"\n"
	for _, tt := range []struct {
		name, toml string
		canSwitch  bool
		want       taskcheck.Reach
	}{
		{"shared", "", true, taskcheck.ReachVerifier},
		{"shared, cannot switch", "", false, taskcheck.ReachTrial},
		{"separate", "[verifier]\nenvironment_mode = \"separate\"\n", false, taskcheck.ReachVerifier},
		{"separate, its own", "[verifier.environment]\nnetwork_mode = \"public\"\n", false, taskcheck.ReachVerifier},
		{"offline already", "[environment]\nnetwork_mode = \"no-network\"\n", false, taskcheck.ReachNone},
		{"phases", "[agent]\nnetwork_mode = \"public\"\n[environment]\nnetwork_mode = \"no-network\"\n[verifier]\nnetwork_mode = \"public\"\n", false, taskcheck.ReachTrial},
		{"steps", steps, true, taskcheck.ReachVerifier},
		{"steps, cannot switch", steps + "[steps.agent]\nnetwork_mode = \"public\"\n[steps.verifier]\nnetwork_mode = \"public\"\n", false, taskcheck.ReachTrial},
		{"one step separate", steps + "[steps.verifier]\nenvironment_mode = \"separate\"\n", true, taskcheck.ReachVerifier},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, _, err := harbor.ParseConfig([]byte(tt.toml))
			if err != nil {
				t.Fatal(err)
			}
			before := make([]harbor.NetworkPlan, 0)
			all := []*harbor.Step{nil}
			if c.HasSteps() {
				all = []*harbor.Step{&c.Steps[0], &c.Steps[1]}
			}
			for _, s := range all {
				before = append(before, c.PlanNetwork(s, nil, nil))
			}
			if got := taskcheck.TakeNetwork(&c, tt.canSwitch); got != tt.want {
				t.Fatalf("got %s, want %s", got, tt.want)
			}
			for i, s := range all {
				plan := c.PlanNetwork(s, nil, nil)
				if plan.VerifierPhase.Mode != harbor.NoNetwork {
					t.Errorf("the verifier has %s", plan.VerifierPhase.Mode)
				}
				if tt.want == taskcheck.ReachVerifier && !plan.AgentPhase.Equal(before[i].AgentPhase) {
					t.Errorf("the agent has %+v, had %+v", plan.AgentPhase, before[i].AgentPhase)
				}
				if err := plan.CheckSwitching(""); err != nil && !tt.canSwitch {
					t.Error(err)
				}
			}
		})
	}
}

func TestGather(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	result := &jobdir.TrialResult{TrialName: "x"}
	empty, err := taskcheck.Gather(dir, taskcheck.Role{Kind: taskcheck.KindOracle}, result)
	if err != nil || empty.ExitCode != "" || empty.Suspicions != nil {
		t.Errorf("%+v, %v", empty, err)
	}
	write("agent/exit-code.txt", "7\n")
	write("agent/command.txt", "hello")
	write("steps/a/agent/command.txt", " again")
	write(jobdir.NotesFile, `{"schema": "proctor-trial-v1", "verification": {"suspicions": ["one"]}, "agent_left": {"processes": 2, "names": []}}`)
	oracle, err := taskcheck.Gather(dir, taskcheck.Role{Kind: taskcheck.KindOracle}, result)
	if err != nil || oracle.ExitCode != "7" || !slices.Equal(oracle.Suspicions, []string{"one", "processes that the agent left running: 2"}) {
		t.Errorf("%+v, %v", oracle, err)
	}
	result.StepResults = []jobdir.StepResult{{StepName: "a"}, {StepName: "../../b"}}
	if _, err := taskcheck.Gather(dir, taskcheck.Role{Kind: taskcheck.KindChannel}, result); err == nil {
		t.Error("a step that leads out of the trial is read")
	}
	result.StepResults = result.StepResults[:1]
	channel, err := taskcheck.Gather(dir, taskcheck.Role{Kind: taskcheck.KindChannel}, result)
	if err != nil || channel.Output != "hello again" {
		t.Errorf("%+v, %v", channel, err)
	}
}
