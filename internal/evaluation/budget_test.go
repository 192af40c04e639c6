package evaluation_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/evaluation"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/ownrunner"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
)

// TestBudgetStopsAnEvaluation: a budget that is used up ends an evaluation without a line,
// and a larger one goes on.
func TestBudgetStopsAnEvaluation(t *testing.T) {
	t.Parallel()
	b := newBench(t, "a", "b", "c")
	stop := llmtest.Call(llm.ToolCall{ID: "1", Name: "final_step", Arguments: "{}"}) // of 15 tokens
	model := &llmtest.Script{Answers: []llmtest.Answer{stop, stop, stop}}
	run := func(budget int64) error {
		e := &evaluation.Evaluation{Dir: b.dir, Tasks: b.tasks, Lock: ownrunner.Lock{AgentName: "tools", Attempts: 1}}
		if err := e.Open(); err != nil {
			return err
		}
		backend := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{rewarded("1")}})
		defer fake.Verify(t, backend)
		s := &job.Session{
			Runner: job.Runner{
				Trials: trial.Runner{Agents: agents.All(), Models: llm.OpenerFunc(func(string, llm.Options) (llm.Model, error) { return model, nil })},
				Budget: llm.Budget{Tokens: budget},
			},
			Backend: func(context.Context, []string) (sandbox.Backend, func() error, error) {
				return backend, func() error { return nil }, nil
			},
		}
		cfg := jobdir.NewConfig(time.Now())
		cfg.Agents = []jobdir.AgentConfig{{Name: new("tools"), ModelName: new("test/m")}}
		cfg = e.Configure(cfg)
		cfg.NConcurrentTrials = 1
		return e.Run(t.Context(), evaluation.Runner{Session: s}, cfg)
	}
	err := run(20)
	if exception.TypeOf(err) != exception.BudgetExceededError || !strings.Contains(err.Error(), "30 of 20 tokens spent; the same command with a larger budget") {
		t.Errorf("the run ends with %v", err)
	}
	if err := run(100); err != nil || len(model.Requests()) != 3 {
		t.Errorf("resumed, the run ends with %v after %d calls", err, len(model.Requests()))
	}
}
