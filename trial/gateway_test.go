package trial_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// TestGatewayKeepsTheKey: commands reach the model by all the variables that programs look
// into, and neither they nor the files of the trial have the provider's key, though
// everything is printed.
func TestGatewayKeepsTheKey(t *testing.T) {
	t.Parallel()
	look := func(ctx context.Context, p *fake.Process, d dialect, wanted int) {
		for name, text := range p.Env {
			_, _ = fmt.Fprintf(p.Stdout, "%s=%s\n", name, text)
			if strings.Contains(text, providersKey) {
				t.Errorf("%s: a command has %s=%s", d.provider, name, text)
			}
		}
		if want := "x " + p.Env["PROCTOR_MODEL_KEY"] + " y"; p.Env["MY"] != want || "x "+p.Env["OTHER"]+" y" != want || p.Env["PLAIN"] != "as it was" {
			t.Errorf("%s: MY is %q and OTHER %q, want what %q has; PLAIN is %q", d.provider, p.Env["MY"], p.Env["OTHER"], want, p.Env["PLAIN"])
		}
		for from, url := range map[string]string{"PROCTOR_MODEL_KEY": p.Env["PROCTOR_MODEL_URL"] + d.path, d.key: p.Env[d.address] + d.version} {
			got, err := post(ctx, url, p.Env[from], asking(""))
			_, _ = fmt.Fprintln(p.Stdout, got.text)
			if err != nil || got.status != wanted {
				t.Errorf("%s: a call to %s with %s: %+v, %v; want %d", d.provider, url, from, got, err, wanted)
			}
		}
	}
	for _, d := range dialects() {
		t.Run(d.provider, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, goodTask(), fake.Config{Rules: []fake.Rule{
				fake.On("get it", func(ctx context.Context, p *fake.Process) (int, error) {
					look(ctx, p, d, http.StatusForbidden)
					return 0, nil
				}),
				fake.On(work, func(ctx context.Context, p *fake.Process) (int, error) { look(ctx, p, d, http.StatusOK); return 0, nil }),
				rewardRule("reward.txt", "1.0"),
			}})
			b.Lookup = func(name string) (string, bool) { return providersKey, name == "HOST_KEY" }
			g := withGateway(t, b, d, nil)
			g.cfg.Agent.Kwargs.Set("install", value.Str("get it"))
			for _, name := range llm.KeyVariables(*g.cfg.Agent.ModelName) {
				g.cfg.Agent.Env.Set(name, providersKey)
			}
			g.cfg.Agent.Env.Set("MY", "x "+providersKey+" y")
			g.cfg.Agent.Env.Set("OTHER", "${HOST_KEY}")
			g.cfg.Agent.Env.Set("PLAIN", "as it was")
			if res := g.run(t); res.ExceptionInfo != nil || rewardsText(res) != "{'reward': 1.0}" {
				t.Fatalf("rewards %s, exception %+v", rewardsText(res), res.ExceptionInfo)
			}
			if n := g.counted(); n.Requests != 2 || n.Answers != 2 {
				t.Errorf("the provider was asked %+v", n)
			}
			g.hasNowhere(t, providersKey)
		})
	}
}

// TestGatewayTakesTheKeyOfThisMachine: a key that the agent is not given is enough, and is
// in no file, though the provider shows it.
func TestGatewayTakesTheKeyOfThisMachine(t *testing.T) {
	t.Parallel()
	refused := &llmtest.Fault{Kind: llmtest.Auth, Message: "Incorrect API key provided: " + providersKey}
	for _, d := range dialects() {
		for want, fault := range map[string]*llmtest.Fault{"": nil, "AuthenticationError": refused} {
			b := newBench(t, goodTask(), fake.Config{Rules: []fake.Rule{fake.On(work, calls(d, 1, "")), rewardRule("reward.txt", "1.0")}})
			b.Lookup = func(name string) (string, bool) { return providersKey, name == d.key }
			g := withGateway(t, b, d, func(*llmtest.Request) llmtest.Turn { return llmtest.Turn{Text: "hello", Fault: fault} })
			g.cfg.Agent.Env.Set(d.key, "")
			g.Gateway = trial.GatewayOn
			if res := g.run(t); exceptionType(res) != want || g.counted().Requests != 1 {
				t.Errorf("%s: exception %+v, the server counted %+v", d.provider, res.ExceptionInfo, g.counted())
			}
			g.hasNowhere(t, providersKey)
		}
	}
}

// TestGatewayCountsUse: the result has what the server counted, in the place of what the
// agent says, and the notes tell of the gateway.
func TestGatewayCountsUse(t *testing.T) {
	t.Parallel()
	for _, d := range dialects() {
		for _, agent := range []string{"command", "python"} {
			t.Run(agent+" with "+d.provider, func(t *testing.T) {
				t.Parallel()
				claim := fake.Write("/proctor/python_context.json", `{"n_input_tokens": 1, "n_cache_tokens": 0, "n_output_tokens": 2, "cost_usd": 9.5, "metadata": {"own": true}}`)
				g := withGateway(t, newBench(t, goodTask(), fake.Config{Rules: []fake.Rule{
					fake.On(work, calls(d, 3, "")), fake.On("python_agent.py", calls(d, 3, ""), claim), rewardRule("reward.txt", "1.0"),
				}}), d, nil)
				if agent == "python" {
					g.pythonAgent(t)
				}
				res := g.run(t)
				if res.ExceptionInfo != nil || rewardsText(res) != "{'reward': 1.0}" {
					t.Fatalf("rewards %s, exception %+v", rewardsText(res), res.ExceptionInfo)
				}
				checkUse(t, "the trial", res.AgentResult, g.counted().Usage)
				if own := value.Repr(res.AgentResult.Metadata); agent == "python" && own != "{'own': True}" {
					t.Errorf("the agent's metadata are %s", own)
				}
				want := jobdir.GatewayNote{Model: d.provider + "/m", Calls: 3}
				if n := readNotes(t, g.dir).Gateway; n == nil || *n != want || g.counted().Answers != 3 {
					t.Errorf("notes %+v, the server counted %+v", n, g.counted())
				}
			})
		}
	}
}

// pythonAgent lets the agent be a Python class.
func (g *gatewayBench) pythonAgent(t *testing.T) {
	t.Helper()
	settings := g.cfg.Agent.Kwargs
	g.cfg.Agent.Name, g.cfg.Agent.Kwargs = new("python"), value.NewObject(3)
	g.cfg.Agent.Kwargs.Set("dir", value.Str(t.TempDir()))
	for _, name := range []string{"api_base", "model_info"} {
		v, _ := settings.Get(name)
		g.cfg.Agent.Kwargs.Set(name, v)
	}
}

// stepGateway is a bench on a task of two steps; the n-th of the commands works on the n-th.
func stepGateway(t *testing.T, answer func(*llmtest.Request) llmtest.Turn, steps ...fake.Handler) *gatewayBench {
	t.Helper()
	b := newBench(t, stepTask(twoSteps, "one", "two"), fake.Config{Rules: []fake.Rule{
		emptying(), fake.On(work, fake.Each(steps...)), rewardByTurn("reward.txt", "1", "0.5"),
	}})
	return withGateway(t, b, openai(), answer)
}

// TestGatewayCountsEachStep: each step has what was used in it.
func TestGatewayCountsEachStep(t *testing.T) {
	t.Parallel()
	g := stepGateway(t, nil, calls(openai(), 1, ""), calls(openai(), 2, ""))
	res := g.run(t)
	if rewardsText(res) != "{'reward': 0.75}" || res.ExceptionInfo != nil {
		t.Fatalf("rewards %s, exception %+v", rewardsText(res), res.ExceptionInfo)
	}
	for i, n := range []int64{1, 2} {
		step := res.StepResults[i]
		checkUse(t, step.StepName, step.AgentResult, llm.Usage{Prompt: 120 * n, Completion: 30 * n, Cached: 20 * n})
		if got := strings.Count(readText(t, g.dir, "steps/"+step.StepName+"/"+callsFile), `"call":`); got != int(n) {
			t.Errorf("step %s has %d recorded calls", step.StepName, got)
		}
	}
	if n := readNotes(t, g.dir).Gateway; n == nil || n.Calls != 3 {
		t.Errorf("notes %+v", n)
	}
}

// TestGatewayOutlivesTheSeal: what a sealed verifier has killed before it begins is of the
// agent's, and not what carries the calls.
func TestGatewayOutlivesTheSeal(t *testing.T) {
	t.Parallel()
	b := newBench(t, stepTask(twoSteps, "one", "two"), fake.Config{Rules: append([]fake.Rule{
		fake.On(work, calls(openai(), 1, "")), fake.On("(/tests/test.sh", fake.Write("/logs/verifier/reward.txt", "1")),
	}, sealing()...)})
	g := withGateway(t, b, openai(), nil)
	g.SealedVerifier = true
	res := g.run(t)
	for _, step := range res.StepResults {
		checkUse(t, step.StepName, step.AgentResult, llm.Usage{Prompt: 120, Completion: 30, Cached: 20})
	}
	if n := readNotes(t, g.dir); len(res.StepResults) != 2 || n.Gateway == nil || n.Gateway.Calls != 2 || n.AgentKilled == nil || n.AgentKilled.Reason != "sealed verifier" {
		t.Errorf("exception %+v, notes %+v", res.ExceptionInfo, n)
	}
}

// TestGatewayFailureIsOfItsStep: what failed in one step says nothing of the next.
func TestGatewayFailureIsOfItsStep(t *testing.T) {
	t.Parallel()
	answer := func(r *llmtest.Request) llmtest.Turn {
		if r.Attempt > 0 {
			return llmtest.Turn{Fault: &llmtest.Fault{Kind: llmtest.Quota}}
		}
		return anAnswer(r)
	}
	g := stepGateway(t, answer, heedless(openai(), 2, 0), fake.Exit(0))
	res := g.run(t)
	for _, step := range res.StepResults {
		if step.ExceptionInfo != nil {
			t.Errorf("step %s: exception %+v", step.StepName, step.ExceptionInfo)
		}
	}
	g = stepGateway(t, answer, heedless(openai(), 2, 0), fake.Exit(3))
	if last := g.run(t).StepResults[1]; last.ExceptionInfo == nil || last.ExceptionInfo.Type != exception.NonZeroAgentExitCodeError {
		t.Errorf("step %s: exception %+v", last.StepName, last.ExceptionInfo)
	}
}

// TestGatewayOfUnknownUse: what a server does not tell is estimated for the budget and not
// known to the result, whatever the agent says.
func TestGatewayOfUnknownUse(t *testing.T) {
	t.Parallel()
	d := openai()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(server.Close)
	claim := fake.Write("/proctor/python_context.json", `{"n_input_tokens": 1, "cost_usd": 9.5}`)
	g := withGateway(t, newBench(t, goodTask(), fake.Config{Rules: []fake.Rule{
		fake.On("python_agent.py", calls(d, 2, ""), claim), rewardRule("reward.txt", "1.0"),
	}}), d, nil)
	g.pythonAgent(t)
	g.cfg.Agent.Kwargs.Set("api_base", value.Str(server.URL+"/v1"))
	g.Meter = llm.NewMeter(llm.OfJob, llm.Budget{}, nil)
	res := g.run(t)
	if a := res.AgentResult; res.ExceptionInfo != nil || a.NInputTokens != nil || a.NOutputTokens != nil || a.NCacheTokens != nil || a.CostUSD != nil {
		t.Errorf("exception %+v, agent result %+v", res.ExceptionInfo, a)
	}
	if n := readNotes(t, g.dir).Gateway; n == nil || n.Calls != 2 || n.Uncounted != 2 {
		t.Errorf("notes %+v", n)
	}
	if s := g.Meter.Spent(); s.Tokens() == 0 || s.Uncounted != 2 {
		t.Errorf("the job's meter has %+v", s)
	}
}

// TestGatewayBudget: a budget that is used up ends the agent with all that it started, and
// what it has done is verified; only the call that was under way is beyond it.
func TestGatewayBudget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		trial, job llm.Budget
		calls      int
		of         string
	}{
		{"tokens", llm.Budget{Tokens: 200}, llm.Budget{}, 2, "the budget of the trial is used up: 300 of 200 tokens spent"},
		{"dollars", llm.Budget{USD: 0.5}, llm.Budget{}, 3, "the budget of the trial is used up: $0.54 of $0.50 spent"},
		{"the job's", llm.Budget{Tokens: 2000}, llm.Budget{Tokens: 200}, 2, "the budget of the job is used up: 300 of 200 tokens spent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var ended atomic.Bool
			daemon := func(ctx context.Context, _ *fake.Process) (int, error) {
				<-ctx.Done()
				ended.Store(true)
				return 0, context.Cause(ctx)
			}
			g := withGateway(t, newBench(t, goodTask(), fake.Config{Rules: []fake.Rule{
				fake.On(work, fake.Leave(daemon), heedless(openai(), 20, 0), fake.Hang()),
				fake.On("/tests/test.sh", func(_ context.Context, p *fake.Process) (int, error) {
					if !ended.Load() {
						t.Error("the verifier began while the agent's daemon was running")
					}
					return 0, p.Sandbox.WriteFile("/logs/verifier/reward.txt", []byte("1.0"), 0o644)
				}),
			}}), openai(), nil)
			g.Budget, g.Meter = c.trial, llm.NewMeter(llm.OfJob, c.job, nil)
			res := g.run(t)
			if exceptionType(res) != exception.BudgetExceededError || res.ExceptionInfo.Message != c.of || rewardsText(res) != "{'reward': 1.0}" {
				t.Fatalf("exception %+v, rewards %s", res.ExceptionInfo, rewardsText(res))
			}
			if n := readNotes(t, g.dir); n.AgentKilled == nil || n.AgentKilled.Reason != "model" || !n.AgentKilled.ProvenGone || n.Gateway.Calls != int64(c.calls) {
				t.Errorf("notes %+v, %+v", n.AgentKilled, n.Gateway)
			}
			if n := g.counted().Requests; n != c.calls {
				t.Errorf("the server was asked %d times, want %d", n, c.calls)
			}
			checkUse(t, "the trial", res.AgentResult, g.counted().Usage)
			if s := g.Meter.Spent(); s.Calls != int64(c.calls) {
				t.Errorf("the job's meter has %+v", s)
			}
		})
	}
}

// TestGatewayBudgetOfAnAgentThatIsNotGone: what cannot be proven to have ended is not judged.
func TestGatewayBudgetOfAnAgentThatIsNotGone(t *testing.T) {
	t.Parallel()
	g := withGateway(t, newBench(t, goodTask(), fake.Config{
		Rules:  []fake.Rule{fake.On(work, heedless(openai(), 3, 0)), rewardRule("reward.txt", "1.0")},
		Before: fake.FailAt(fake.OpKillTree, 1, nil),
	}), openai(), nil)
	g.Budget.Tokens = 200
	res := g.run(t)
	if exceptionType(res) != exception.AgentNotGoneError || res.VerifierResult != nil {
		t.Errorf("exception %+v, rewards %s", res.ExceptionInfo, rewardsText(res))
	}
	if n := readNotes(t, g.dir); n.AgentKilled == nil || n.AgentKilled.ProvenGone || len(n.Errors) != 2 || n.Errors[0].Type != exception.BudgetExceededError {
		t.Errorf("notes %+v, %+v", n.AgentKilled, n.Errors)
	}
}

// TestGatewayBudgetOfCallsAtOnce: each call that is under way when the budget is used up
// ends as it does, and no other is made.
func TestGatewayBudgetOfCallsAtOnce(t *testing.T) {
	t.Parallel()
	const atOnce = 4
	g := gatewayBenchOf(t, openai(), nil, func(ctx context.Context, p *fake.Process) (int, error) {
		ended := make(chan int)
		for range atOnce {
			go func() {
				code, _ := heedless(openai(), 20, 0)(ctx, p)
				ended <- code
			}()
		}
		for range atOnce {
			<-ended
		}
		return fake.Hang()(ctx, p)
	})
	g.Budget.Tokens = 1000
	if res := g.run(t); exceptionType(res) != exception.BudgetExceededError || rewardsText(res) != "{'reward': 1.0}" {
		t.Errorf("exception %+v, rewards %s", res.ExceptionInfo, rewardsText(res))
	}
	if n := g.counted().Requests; n < 7 || n > 7+atOnce-1 {
		t.Errorf("the server was asked %d times", n)
	}
}

// TestGatewayBudgetLeavesNoCall: a trial that the job's budget leaves not one call is as one
// that was not begun.
func TestGatewayBudgetLeavesNoCall(t *testing.T) {
	t.Parallel()
	for name, g := range map[string]*gatewayBench{
		"one step": gatewayBenchOf(t, openai(), nil, calls(openai(), 3, "")), "steps": stepGateway(t, nil, calls(openai(), 1, "")),
	} {
		g.Meter = llm.NewMeter(llm.OfJob, llm.Budget{Tokens: 10}, nil)
		g.Meter.Add(llm.Spent{Prompt: 10})
		if res := g.run(t); exceptionType(res) != exception.CancelledError || res.VerifierResult != nil || len(g.server.Requests()) != 0 {
			t.Errorf("%s: exception %+v, result %+v, %d calls", name, res.ExceptionInfo, res.VerifierResult, len(g.server.Requests()))
		}
	}
}
