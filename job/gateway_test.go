package job_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// asks calls the model of a command twice, and ends when it is refused. An answer is a
// stream, whose end does not come before it is counted.
func asks(ctx context.Context, p *fake.Process) (int, error) {
	for _, question := range []string{"First?", "Then?"} {
		body := `{"model":"m","stream":true,"messages":[{"role":"user","content":"` + question + `"}]}`
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.Env["OPENAI_BASE_URL"]+"/chat/completions", strings.NewReader(body))
		if err != nil {
			return 0, err
		}
		r.Header.Set("Authorization", "Bearer "+p.Env["OPENAI_API_KEY"])
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		if err != nil {
			return 2, context.Cause(ctx)
		}
		status := resp.StatusCode
		err = resp.Write(p.Stdout)
		if closed := resp.Body.Close(); err != nil || closed != nil || status != http.StatusOK {
			return 1, context.Cause(ctx)
		}
	}
	return 0, nil
}

// commandHarness runs a command that calls a model twice, on four tasks one after the other.
// An answer uses 150 tokens and costs 18 cents.
func commandHarness(t *testing.T) (*harness, *llmtest.Server) {
	t.Helper()
	model := &llmtest.Server{Key: "sk-the-providers-own-key", Answer: func(*llmtest.Request) llmtest.Turn {
		return llmtest.Turn{Text: "hello", Usage: &llm.Usage{Prompt: 120, Completion: 30}}
	}}
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	h := newHarness(t, writeDataset(t, "a", "b", "c", "d"), fake.Config{Rules: []fake.Rule{fake.On("work on it", asks), grant("0.5")}})
	a := jobdir.NewAgentConfig()
	a.Name, a.ModelName, a.Kwargs = new("command"), new("openai/m"), value.NewObject(3)
	a.Kwargs.Set("run", value.Str("work on it"))
	a.Kwargs.Set("api_base", value.Str(server.URL+"/v1"))
	prices := value.NewObject(2)
	prices.Set("input_cost_per_token", value.Float(0.001))
	prices.Set("output_cost_per_token", value.Float(0.002))
	a.Kwargs.Set("model_info", prices)
	h.cfg.Agents, h.cfg.NConcurrentTrials = []jobdir.AgentConfig{a}, 1
	lookup := func(name string) (string, bool) { return "sk-the-providers-own-key", name == "OPENAI_API_KEY" }
	h.runner.Trials.Models = &llm.Client{Lookup: lookup}
	return h, model
}

// TestJobBudgetOfCommands: what commands ask of their model counts for the budget of the
// job, which ends as for agents that call models themselves, also when it goes on later.
func TestJobBudgetOfCommands(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ first, larger llm.Budget }{
		"tokens": {llm.Budget{Tokens: 450}, llm.Budget{Tokens: 900}}, "dollars": {llm.Budget{USD: 0.5}, llm.Budget{USD: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, model := commandHarness(t)
			h.runner.Budget = c.first
			out := h.run(t)
			if got := exceptionsOf(out.Records); !out.Interrupted || out.Budget == nil || !slices.Equal(got, []string{"", exception.BudgetExceededError}) || out.Progress.Pending != 2 {
				t.Fatalf("exceptions %q, outcome %+v", got, out)
			}
			if s := out.Progress.Spent; s.Calls != 3 || s.Tokens() != 450 || len(model.Requests()) != 3 || out.Records[1].Rewards == nil {
				t.Errorf("spent %+v after %d requests; the second trial is %+v", s, len(model.Requests()), out.Records[1])
			}
			h.runner.Budget = c.larger
			again, err := h.runner.Run(t.Context(), h.goOn(t).Prepared)
			if err != nil || again.Progress.Spent.Tokens() != 900 || len(model.Requests()) != 6 || again.Progress.Pending != 0 {
				t.Fatalf("%v: outcome %+v after %d requests", err, again, len(model.Requests()))
			}
			got := exceptionsOf(again.Records)
			slices.Sort(got)
			if want := []string{"", "", exception.BudgetExceededError, exception.BudgetExceededError}; !slices.Equal(got, want) {
				t.Errorf("exceptions %q, want %q", got, want)
			}
		})
	}
}

// TestJobBudgetOfCommandsWithTheirOwnKeys: calls that do not go through the program do not
// count.
func TestJobBudgetOfCommandsWithTheirOwnKeys(t *testing.T) {
	t.Parallel()
	h, model := commandHarness(t)
	h.runner.Trials.Gateway = trial.GatewayOff
	h.runner.Budget.Tokens = 10
	if out := h.run(t); out.Interrupted || out.Progress.Spent.Tokens() != 0 || len(model.Requests()) != 0 {
		t.Errorf("outcome %+v after %d requests", out, len(model.Requests()))
	}
}

// TestJobOfCommandsIsReplayed: a job of commands is replayed from the directory of another.
func TestJobOfCommandsIsReplayed(t *testing.T) {
	t.Parallel()
	h, model := commandHarness(t)
	if out := h.run(t); out.Result.Stats.NErroredTrials != 0 || len(model.Requests()) != 8 {
		t.Fatalf("outcome %+v after %d requests", out, len(model.Requests()))
	}
	again, other := commandHarness(t)
	again.cfg.Datasets, again.cfg.Agents = h.cfg.Datasets, h.cfg.Agents
	again.runner.Trials.Models = offline(t)
	again.runner.Recordings = &job.Recordings{Dir: h.dir(), Strict: true}
	out := again.run(t)
	if out.Result.Stats.NErroredTrials != 0 || len(model.Requests()) != 8 || len(other.Requests()) != 0 || out.Progress.Spent != (llm.Spent{}) {
		t.Fatalf("outcome %+v after %d and %d requests", out, len(model.Requests()), len(other.Requests()))
	}
	earlier := inOrder(t, h.dir())
	for i, res := range inOrder(t, again.dir()) {
		was := earlier[i].AgentResult
		if value.Repr(*res.AgentResult.NInputTokens) != value.Repr(*was.NInputTokens) || value.Repr(*res.AgentResult.NOutputTokens) != "60" || *res.AgentResult.CostUSD != *was.CostUSD {
			t.Errorf("%s: agent result %+v, it was %+v", res.TrialName, res.AgentResult, was)
		}
	}
}
