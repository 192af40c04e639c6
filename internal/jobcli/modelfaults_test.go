package jobcli_test

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/llm/providers"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// TestFaultsOfModels: what a server does wrong ends the trial as docs/models.md says, or
// not at all, in every protocol; and the tokens of the result are those that the server
// counted.
func TestFaultsOfModels(t *testing.T) {
	t.Parallel()
	once := func(f llmtest.Fault) []llmtest.Fault { return []llmtest.Fault{f} }
	always := func(f llmtest.Fault) []llmtest.Fault { return slices.Repeat([]llmtest.Fault{f}, 40) }
	for name, c := range map[string]struct {
		faults    []llmtest.Fault // of the second call
		exception string          // of the trial; empty for a reward
		requests  int
		waited    time.Duration // less is a failure
	}{
		"none":                 {nil, "", 2, 0},
		"overloaded once":      {once(llmtest.Fault{Kind: llmtest.Overload}), "", 3, 4 * time.Second},
		"overloaded":           {always(llmtest.Fault{Kind: llmtest.Overload}), "InternalServerError", 4, 8 * time.Second},
		"a status once":        {once(llmtest.Fault{Status: 500, RetryAfter: "7"}), "", 3, 7 * time.Second},
		"no JSON":              {once(llmtest.Fault{Kind: llmtest.Malformed}), "", 3, 4 * time.Second},
		"no answer":            {once(llmtest.Fault{Kind: llmtest.Empty}), "", 3, 4 * time.Second},
		"cut":                  {once(llmtest.Fault{Kind: llmtest.Cut}), "", 3, 4 * time.Second},
		"always cut":           {always(llmtest.Fault{Kind: llmtest.Cut}), "APIConnectionError", 4, 8 * time.Second},
		"never JSON":           {always(llmtest.Fault{Kind: llmtest.Malformed}), "APIConnectionError", 4, 8 * time.Second},
		"too many once":        {once(llmtest.Fault{Kind: llmtest.RateLimit, RetryAfter: "20"}), "", 3, 19 * time.Second},
		"too many":             {always(llmtest.Fault{Kind: llmtest.RateLimit, RetryAfter: "20"}), "RateLimitError", 11, 160 * time.Second},
		"nothing left":         {always(llmtest.Fault{Kind: llmtest.Quota}), "RateLimitError", 2, 0},
		"a refused key":        {always(llmtest.Fault{Kind: llmtest.Auth}), "AuthenticationError", 2, 0},
		"no such model":        {always(llmtest.Fault{Kind: llmtest.Unknown}), "NotFoundError", 2, 0},
		"filtered":             {always(llmtest.Fault{Kind: llmtest.Refused}), "ContentPolicyViolationError", 2, 0},
		"always too long":      {always(llmtest.Fault{Kind: llmtest.Context}), "ContextLengthExceededError", 0, 0},
		"an answer that hangs": {always(llmtest.Fault{Kind: llmtest.Wait}), "AgentTimeoutError", 0, 0},
	} {
		for _, api := range []llm.API{llm.Chat, llm.Responses, llm.Anthropic, llm.Gemini} {
			t.Run(name+"/"+string(api), func(t *testing.T) {
				t.Parallel()
				b := newModelBench(t, api, c.faults)
				limit := "60.0"
				if c.exception == "AgentTimeoutError" {
					limit = "1.0"
				}
				res := b.run(t, limit)
				got := ""
				if res.ExceptionInfo != nil {
					got = res.ExceptionInfo.Type
				}
				requests, waited := len(b.server.Requests()), b.waited
				if got != c.exception || c.requests > 0 && requests != c.requests || waited < c.waited {
					t.Errorf("exception %q after %d requests and %s of waiting, want %q, %d and %s: %+v", got, requests, waited, c.exception, c.requests, c.waited, res.ExceptionInfo)
				}
				if scored := res.VerifierResult != nil; scored != (c.exception == "" || c.exception == "AgentTimeoutError") {
					t.Errorf("scored: %v, with exception %q", scored, got)
				}
				b.checkTokens(t, res)
			})
		}
	}
}

// modelBench runs agent tools on a task in a simulated sandbox, with a server of models.
type modelBench struct {
	server *llmtest.Server
	api    llm.API
	base   string
	waited time.Duration
}

func newModelBench(t *testing.T, api llm.API, faults []llmtest.Fault) *modelBench {
	t.Helper()
	b := &modelBench{api: api, server: &llmtest.Server{Key: "key"}}
	b.server.Answer = func(r *llmtest.Request) llmtest.Turn {
		if r.Turn == 0 {
			return llmtest.Turn{Calls: []llm.ToolCall{{Name: "bash", Arguments: `{"command": "solve-it"}`}}}
		}
		turn := llmtest.Turn{Calls: []llm.ToolCall{{Name: "final_step", Arguments: "{}"}}}
		if r.Attempt < len(faults) {
			turn.Fault = &faults[r.Attempt]
		}
		return turn
	}
	server := httptest.NewServer(b.server)
	t.Cleanup(server.Close)
	b.base = server.URL
	if api == llm.Chat || api == llm.Responses {
		b.base += "/v1"
	}
	return b
}

func (b *modelBench) run(t *testing.T, limit string) *jobdir.TrialResult {
	t.Helper()
	task := filepath.Join(t.TempDir(), "task")
	for name, text := range map[string]string{
		"task.toml":      "[agent]\ntimeout_sec = " + limit + "\n[environment]\ndocker_image = \"x\"\n",
		"instruction.md": "Solve it.", "environment/.keep": "", "tests/test.sh": "", "solution/solve.sh": "",
	} {
		file := filepath.Join(task, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	backend := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{fake.On("test.sh", fake.Write("/logs/verifier/reward.txt", "1"))}})
	defer fake.Verify(t, backend)
	lookup := func(name string) (string, bool) { return "key", name == "LOCAL_API_KEY" }
	models := &llm.Client{Dial: providers.Dial, Lookup: lookup, Wait: func(ctx context.Context, d time.Duration) error {
		b.waited += d
		return ctx.Err()
	}, Now: b.now()}
	runner := &trial.Runner{Backend: backend, Agents: agents.All(), Lookup: lookup, Models: models}
	cfg := jobdir.NewTrialConfig(jobdir.TaskConfig{Path: &task})
	cfg.TrialsDir, cfg.TrialName = t.TempDir(), "task__1234567"
	cfg.Agent.Name, cfg.Agent.ModelName = new("tools"), new("local/m")
	cfg.Agent.Kwargs = value.NewObject(2)
	cfg.Agent.Kwargs.Set("api", value.Str(b.api))
	cfg.Agent.Kwargs.Set("api_base", value.Str(b.base))
	res, err := runner.Run(t.Context(), cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// now is a clock by which the waiting takes its time.
func (b *modelBench) now() func() time.Time {
	begin := time.Now()
	return func() time.Time { return begin.Add(b.waited) }
}

// checkTokens compares the result with what the server counted.
func (b *modelBench) checkTokens(t *testing.T, res *jobdir.TrialResult) {
	t.Helper()
	counted := b.server.Counts()[llmtest.Account{Model: "m", Key: "key"}].Usage
	if res.AgentResult == nil || res.AgentResult.NInputTokens == nil {
		if counted == (llm.Usage{}) {
			return // the time was up before the first answer
		}
		t.Errorf("the result has no tokens: %+v", res.AgentResult)
		return
	}
	in, _ := res.AgentResult.NInputTokens.Int64()
	out, _ := res.AgentResult.NOutputTokens.Int64()
	if in != counted.Prompt || out != counted.Completion {
		t.Errorf("%d tokens in, %d out; the server counted %d and %d", in, out, counted.Prompt, counted.Completion)
	}
}
