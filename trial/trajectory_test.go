package trial_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// message is a line that pi prints when its model has answered.
func message(text, usage, more string) string {
	if usage == "" {
		usage = `{"totalTokens": 9, "input": 800, "output": 50, "cacheRead": 200, "cacheWrite": 0, "cost": {"total": 0.25}}`
	}
	return fmt.Sprintf(`{"type":"message_end","message":{"role":"assistant","provider":"proctor","model":"m","content":[{"type":"text","text":%q}],"usage":%s%s}}`+"\n", text, usage, more)
}

// readTrajectory reads one of a trial's directory; nil for none.
func readTrajectory(t *testing.T, dir, name string) *atif.Trajectory {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil
	}
	v, err := value.DecodeText(string(data))
	o, ok := v.(*value.Object)
	if err != nil || !ok {
		t.Fatalf("%s is no JSON object: %v\n%s", name, err, data)
	}
	made, err := atif.Decode(o)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return made
}

// used is the use of an agent's result as text.
func used(r *jobdir.AgentResult) string {
	show := func(n *value.Int) string {
		if n == nil {
			return "-"
		}
		return n.String()
	}
	usd := "-"
	if r.CostUSD != nil {
		usd = fmt.Sprint(*r.CostUSD)
	}
	return strings.Join([]string{show(r.NInputTokens), show(r.NCacheTokens), show(r.NOutputTokens), usd}, " ")
}

// priced makes the model of the configuration one with prices.
func priced(b *bench) {
	b.cfg.Agent.ModelName = new("openai/m")
	b.Lookup = func(name string) (string, bool) { return providersKey, name == "OPENAI_API_KEY" }
	b.Models = &llm.Client{Lookup: b.Lookup}
	b.Gateway = trial.GatewayOff
	info := value.NewObject(2)
	info.Set("input_cost_per_token", value.Float(0.001))
	info.Set("output_cost_per_token", value.Float(0.002))
	b.cfg.Agent.Kwargs = value.NewObject(1)
	b.cfg.Agent.Kwargs.Set("model_info", info)
}

// TestTrajectoryOfLogs: what the agent logged becomes a trajectory, without secrets, with
// the model's own name; its tokens become the trial's.
func TestTrajectoryOfLogs(t *testing.T) {
	t.Parallel()
	m := &mine{}
	b := withMine(t, newBench(t, goodTask(), fake.Config{Rules: m.rules(fake.Print(message("one", "", "") + message("my key is "+providersKey, "", "")))}), mineFile)
	priced(b)
	res := b.run(t)
	if res.ExceptionInfo != nil || used(res.AgentResult) != "2000 400 100 0.5" {
		t.Errorf("exception %+v, used %s", res.ExceptionInfo, used(res.AgentResult))
	}
	made := readTrajectory(t, b.dir, "agent/trajectory.json")
	if made == nil || len(made.Steps) != 2 || made.Agent.ModelName == nil || *made.Agent.ModelName != "openai/m" || *made.Steps[0].ModelName != "openai/m" || made.Agent.Version != "1.2.3" {
		t.Fatalf("trajectory %+v", made)
	}
	b.hasNowhere(t, providersKey)
	if notes := readNotes(t, b.dir); len(notes.Warnings) > 0 {
		t.Errorf("warnings %q", notes.Warnings)
	}
}

// TestUnpricedTrajectory: a cost of 0 of an agent that knows no prices is none.
func TestUnpricedTrajectory(t *testing.T) {
	t.Parallel()
	m := &mine{}
	free := `{"totalTokens": 9, "input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": 0}}`
	b := withMine(t, newBench(t, goodTask(), fake.Config{Rules: m.rules(fake.Print(message("x", free, "")))}), mineFile)
	priced(b)
	b.cfg.Agent.Kwargs = nil
	b.cfg.Agent.ModelName = new("openai/nobody-knows-what-it-costs")
	if res := b.run(t); used(res.AgentResult) != "1 0 2 -" {
		t.Errorf("exception %+v, used %s", res.ExceptionInfo, used(res.AgentResult))
	}
	if made := readTrajectory(t, b.dir, "agent/trajectory.json"); made == nil || made.FinalMetrics.CostUSD != nil || made.Steps[0].Metrics.CostUSD != nil {
		t.Errorf("trajectory %+v", made)
	}
}

// TestNonsenseInLogs: numbers that no use can be are not the trial's, and no log ends it.
func TestNonsenseInLogs(t *testing.T) {
	t.Parallel()
	for usage, want := range map[string]string{
		`{"totalTokens": 9, "input": -5, "output": -50, "cacheRead": 0, "cost": {"total": -1}}`:               "- 0 - -",
		`{"totalTokens": 9, "input": 1, "output": 2, "cacheRead": 0, "cost": {"total": NaN}}`:                 "1 0 2 -",
		`{"totalTokens": 9, "input": 1, "output": 2, "cacheRead": 0, "cost": {"total": Infinity}}`:            "1 0 2 -",
		`{"totalTokens": 9, "input": 1e400, "output": 2, "cacheRead": 0, "cost": {"total": 1e400}}`:           "0 0 2 -",
		`{"totalTokens": 9, "input": "many", "output": [], "cacheRead": {}, "cost": null}`:                    "",
		`{"totalTokens": 9, "input": 1` + strings.Repeat("0", 400) + `, "output": 1, "cost": {"total": 1e9}}`: "",
		`[]`: "- - - -",
	} {
		m := &mine{}
		b := withMine(t, newBench(t, goodTask(), fake.Config{Rules: m.rules(fake.Print("{{{\n\x00\xff\n" + message("x", usage, "")))}), mineFile)
		res := b.run(t)
		if res.ExceptionInfo != nil || rewardsText(res) != "{'reward': 1.0}" || want != "" && used(res.AgentResult) != want {
			t.Errorf("%.100s: exception %+v, used %s; want %s", usage, res.ExceptionInfo, used(res.AgentResult), want)
		}
		data := readText(t, b.dir, "result.json")
		if strings.Contains(data, "NaN") || strings.Contains(data, "Infinity") {
			t.Errorf("%.100s: result.json has no number in\n%s", usage, data)
		}
		if made, err := os.ReadFile(filepath.Join(b.dir, "agent/trajectory.json")); err == nil && !json.Valid(made) {
			t.Errorf("%.100s: the trajectory is no JSON:\n%s", usage, made)
		}
		if _, err := jobdir.ParseTrialResult([]byte(data)); err != nil {
			t.Errorf("%.100s: %v", usage, err)
		}
	}
}

// TestGatewayWinsOverLogs: what the gateway counted is the trial's use, whatever the agent
// logged.
func TestGatewayWinsOverLogs(t *testing.T) {
	t.Parallel()
	m := &mine{}
	d := openai()
	g := withGateway(t, newBench(t, goodTask(), fake.Config{Rules: m.rules(calls(d, 2, ""), fake.Print(message("x", "", "")))}), d, nil)
	g.cfg.Agent.Kwargs.Delete("run")
	withMine(t, g.bench, mineFile)
	res := g.run(t)
	if res.ExceptionInfo != nil {
		t.Fatalf("exception %+v", res.ExceptionInfo)
	}
	checkUse(t, "the trial", res.AgentResult, llm.Usage{Prompt: 240, Completion: 60, Cached: 40})
	if made := readTrajectory(t, g.dir, "agent/trajectory.json"); made == nil || len(made.Steps) != 1 {
		t.Errorf("trajectory %+v", made)
	}
	g.hasNowhere(t, providersKey)
}

// failed is what pi prints of a run that its model ended.
func failed(usage, why string) string {
	return message("", usage, fmt.Sprintf(`,"stopReason":"error","errorMessage":%q`, why))
}

const nothingUsed = `{"totalTokens": 0, "input": 0, "output": 0, "cacheRead": 0, "cost": {"total": 0}}`

// TestFailuresInLogs: a run that failed by the agent's own word has that word's type and is
// not judged where no model answered; else it is judged.
func TestFailuresInLogs(t *testing.T) {
	t.Parallel()
	const refused = "401 Incorrect API key provided"
	for name, c := range map[string]struct {
		printed string
		exit    int
		file    string
		typ     string
		message string
		judged  bool
	}{
		"all is well":                     {printed: message("x", "", ""), judged: true},
		"exit":                            {printed: message("x", "", ""), exit: 3, typ: exception.NonZeroAgentExitCodeError, judged: true},
		"refused":                         {printed: failed(nothingUsed, refused), typ: "AuthenticationError", message: "mine says that its run failed: " + refused},
		"refused, exit":                   {printed: failed(nothingUsed, refused), exit: 1, typ: "AuthenticationError", message: refused},
		"refused after answers":           {printed: message("x", "", "") + failed(nothingUsed, refused), typ: exception.NonZeroAgentExitCodeError, message: "ended as if all were well", judged: true},
		"refused after answers, and exit": {printed: message("x", "", "") + failed(nothingUsed, refused), exit: 4, typ: exception.NonZeroAgentExitCodeError, message: "exit 4", judged: true},
		"of no type":                      {printed: failed(nothingUsed, "it did not work"), typ: exception.NonZeroAgentExitCodeError, message: "it did not work", judged: true},
		"by the file": {printed: "oh: the cat is on the keyboard\n", file: mineFile + "[[failure]]\npattern = 'the cat'\ntype = 'APIConnectionError'\n",
			typ: "APIConnectionError", message: "mine says that its run failed: oh: the cat is on the keyboard"},
		"by the file, after answers": {printed: message("x", "", "") + "the cat\n", file: mineFile + "[[failure]]\npattern = 'the cat'\ntype = 'APIConnectionError'\n",
			typ: exception.NonZeroAgentExitCodeError, message: "the cat", judged: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &mine{}
			file := mineFile
			if c.file != "" {
				file = c.file
			}
			b := withMine(t, newBench(t, goodTask(), fake.Config{Rules: m.rules(fake.Print(c.printed), fake.Exit(c.exit))}), file)
			res := b.run(t)
			if exceptionType(res) != c.typ || c.typ != "" && !strings.Contains(res.ExceptionInfo.Message, c.message) {
				t.Errorf("exception %+v", res.ExceptionInfo)
			}
			if judged := res.VerifierResult != nil; judged != c.judged {
				t.Errorf("judged: %t", judged)
			}
		})
	}
}

// TestForgedFailure: an agent whose model answered does not get out of being judged by a
// log that says that none did.
func TestForgedFailure(t *testing.T) {
	t.Parallel()
	m := &mine{}
	d := openai()
	g := withGateway(t, newBench(t, goodTask(), fake.Config{Rules: m.rules(calls(d, 1, ""), fake.Print(failed(nothingUsed, "429 rate limit")))}), d, nil)
	g.cfg.Agent.Kwargs.Delete("run")
	withMine(t, g.bench, mineFile)
	if res := g.run(t); exceptionType(res) != exception.NonZeroAgentExitCodeError || res.VerifierResult == nil {
		t.Errorf("exception %+v, rewards %s", res.ExceptionInfo, rewardsText(res))
	}
}

// TestTrajectoryAtTheDeadline: an agent that is ended has a trajectory of what it did, and
// its limit is what ended it.
func TestTrajectoryAtTheDeadline(t *testing.T) {
	t.Parallel()
	m := &mine{}
	b := withMine(t, newBench(t, goodTask(), fake.Config{Rules: m.rules(fake.Print(message("x", "", "")+failed(nothingUsed, "401 unauthorized")), fake.Hang())}), mineFile)
	res := b.runTimed(t)
	if exceptionType(res) != exception.AgentTimeoutError || res.VerifierResult == nil || used(res.AgentResult) != "1000 200 50 0.25" {
		t.Errorf("exception %+v, used %s", res.ExceptionInfo, used(res.AgentResult))
	}
	if made := readTrajectory(t, b.dir, "agent/trajectory.json"); made == nil || len(made.Steps) != 2 {
		t.Errorf("trajectory %+v", made)
	}
}

// TestTrajectoriesOfSteps: each step has its own, of its logs alone, also where nothing is
// mounted.
func TestTrajectoriesOfSteps(t *testing.T) {
	t.Parallel()
	for _, mounted := range []bool{true, false} {
		m := &mine{}
		each := fake.Each(fake.Print(message("one", "", "")), fake.Print(message("two", "", "")+message("three", "", "")))
		caps := &sandbox.Capabilities{Mounted: mounted, Build: true}
		rules := append([]fake.Rule{emptying()}, m.rules(each)...)
		b := withMine(t, newBench(t, stepTask(twoSteps, "one", "two"), fake.Config{Rules: rules, Capabilities: caps}), mineFile)
		res := b.run(t)
		if res.ExceptionInfo != nil || len(res.StepResults) != 2 {
			t.Fatalf("exception %+v, steps %+v", res.ExceptionInfo, res.StepResults)
		}
		for i, want := range []string{"1000 200 50 0.25", "2000 400 100 0.5"} {
			step := res.StepResults[i]
			made := readTrajectory(t, b.dir, "steps/"+step.StepName+"/agent/trajectory.json")
			if used(step.AgentResult) != want || made == nil || len(made.Steps) != i+1 {
				t.Errorf("mounted %t, step %s used %s, want %s; trajectory %+v; warnings %q", mounted, step.StepName, used(step.AgentResult), want, made, readNotes(t, b.dir).Warnings)
			}
		}
		if made := readTrajectory(t, b.dir, "agent/trajectory.json"); made != nil {
			t.Errorf("the trial itself has %+v", made)
		}
	}
}

// TestCancelledTrajectory: a trial that is cancelled is that, whatever the logs say.
func TestCancelledTrajectory(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	m := &mine{}
	b := withMine(t, newBench(t, goodTask(), fake.Config{Rules: m.rules(fake.Print(failed(nothingUsed, "401")), func(ctx context.Context, _ *fake.Process) (int, error) {
		cancel()
		<-ctx.Done()
		return 0, context.Cause(ctx)
	})}), mineFile)
	res, err := b.Run(ctx, b.cfg, 1)
	if err != nil || exceptionType(res) != exception.CancelledError {
		t.Errorf("%+v, %v", res.ExceptionInfo, err)
	}
}
