package job_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// shy is a model that uses the shell once in each conversation and then stops. An answer
// uses 10 tokens and costs a cent.
type shy struct {
	calls atomic.Int64
	mute  bool // it does not tell what it used
}

func (m *shy) Info() llm.Info {
	return llm.Info{Name: "test/m", Prices: &llm.Prices{Input: 0.001, Output: 0.001}}
}

func (m *shy) Complete(_ context.Context, req *llm.Request) (*llm.Response, error) {
	m.calls.Add(1)
	call := llm.ToolCall{ID: "1", Name: "bash", Arguments: `{"command": "true"}`}
	if req.Messages[len(req.Messages)-1].Role == llm.Tool {
		call = llm.ToolCall{ID: "2", Name: "final_step", Arguments: `{}`}
	}
	resp := &llm.Response{Message: llm.Message{Role: llm.Assistant, Calls: []llm.ToolCall{call}}, Finish: llm.CallsMade}
	if !m.mute {
		resp.Usage, resp.Cost = &llm.Usage{Prompt: 8, Completion: 2}, new(0.01)
	}
	return resp, nil
}

// budgetHarness runs a model on four tasks, one after the other. Each takes two calls.
func budgetHarness(t *testing.T, m llm.Model) *harness {
	t.Helper()
	h := newHarness(t, writeDataset(t, "a", "b", "c", "d"), fake.Config{Rules: []fake.Rule{grant("1")}})
	h.cfg.NConcurrentTrials = 1
	h.cfg.Agents = []jobdir.AgentConfig{{Name: new("tools"), ModelName: new("test/m")}}
	h.runner.Trials.Models = llm.OpenerFunc(func(string, llm.Options) (llm.Model, error) { return m, nil })
	return h
}

// resume prepares the job to go on.
func (h *harness) goOn(t *testing.T, types ...string) *job.Resumed {
	t.Helper()
	o := resumeOptions()
	o.Types = types
	resumed, err := job.PrepareResume(h.dir(), o)
	if err != nil {
		t.Fatal(err)
	}
	return resumed
}

func exceptionsOf(records []jobdir.Record) []string {
	var types []string
	for _, r := range records {
		types = append(types, r.ExceptionType)
	}
	return types
}

func (h *harness) warnings() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var texts []string
	for _, e := range h.events {
		if e.Kind == job.EventWarning {
			texts = append(texts, e.Message)
		}
	}
	h.events = nil
	return texts
}

// TestJobBudget: a budget that is used up stops the job like an interrupt: what ended is
// kept with its score, what was not begun is pending. Resumed with a larger budget the job
// goes on, and what was spent before counts.
func TestJobBudget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                 string
		first, less, larger  llm.Budget
		wantFirst, wantAgain string
	}{
		{"tokens", llm.Budget{Tokens: 30}, llm.Budget{Tokens: 25}, llm.Budget{Tokens: 1000}, "30 of 30 tokens", "30 of 25 tokens"},
		{"dollars", llm.Budget{USD: 0.025}, llm.Budget{USD: 0.03}, llm.Budget{USD: 10}, "$0.03 of $0.025", "$0.03 of $0.03"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			model := &shy{}
			h := budgetHarness(t, model)
			h.runner.Budget = c.first
			out := h.run(t)
			if !out.Interrupted || out.Budget == nil || !strings.Contains(out.Budget.Error(), c.wantFirst) || out.Result.FinishedAt != nil {
				t.Fatalf("outcome %+v, budget %v", out, out.Budget)
			}
			if got := exceptionsOf(out.Records); !slices.Equal(got, []string{"", exception.BudgetExceededError}) || out.Progress.Pending != 2 || model.calls.Load() != 3 {
				t.Errorf("exceptions %q, %d pending, %d calls", got, out.Progress.Pending, model.calls.Load())
			}
			if r := out.Records[1]; r.Rewards == nil || value.Repr(*r.Usage.NInputTokens) != "8" {
				t.Errorf("the trial that the budget ended: %+v", r)
			}
			if w := h.warnings(); len(w) != 1 || !strings.HasSuffix(w[0], "no more trials are begun") {
				t.Errorf("warnings %q", w)
			}
			state, err := journal.LoadState(h.dir())
			if err != nil || state.Runs[0].End.Kind != journal.JobInterrupted || state.Runs[0].End.Reason != out.Budget.Error() {
				t.Errorf("%v, the run ended with %+v", err, state.Runs[0].End)
			}

			// A budget that is used up already begins nothing.
			resumed := h.goOn(t)
			if len(resumed.Existing) != 2 || len(resumed.Remaining) != 2 {
				t.Fatalf("%d kept, %d to run", len(resumed.Existing), len(resumed.Remaining))
			}
			h.runner.Budget = c.less
			again, err := h.runner.Run(t.Context(), resumed.Prepared)
			if err != nil || again.Budget == nil || !strings.Contains(again.Budget.Error(), c.wantAgain) || again.Progress.Pending != 2 || model.calls.Load() != 3 {
				t.Fatalf("%v: %+v", err, again)
			}

			h.runner.Budget = c.larger
			last, err := h.runner.Run(t.Context(), h.goOn(t).Prepared)
			if err != nil || last.Interrupted || last.Budget != nil || len(last.Records) != 4 || model.calls.Load() != 7 {
				t.Fatalf("%v: %+v after %d calls", err, last, model.calls.Load())
			}
			if s := last.Progress.Spent; s.Tokens() != 70 {
				t.Errorf("spent %+v", s)
			}
			if m := last.Models; m.Trials != 4 || m.Solved != 4 || value.Repr(*m.Usage.NInputTokens) != "56" || *m.PerTrial() < 0.0174 || *m.PerTrial() > 0.0176 {
				t.Errorf("models %+v", m)
			}
			if w := h.warnings(); len(w) != 1 { // that of the run before
				t.Errorf("warnings %q", w)
			}
		})
	}
}

// TestJobBudgetCountsAllAttempts: also what attempts used whose results do not count.
func TestJobBudgetCountsAllAttempts(t *testing.T) {
	t.Parallel()
	model := &shy{}
	h := budgetHarness(t, model)
	h.runner.Budget.Tokens = 30
	h.run(t)
	resumed := h.goOn(t, exception.BudgetExceededError)
	if len(resumed.Remaining) != 3 {
		t.Fatalf("%d to run", len(resumed.Remaining))
	}
	h.runner.Budget.Tokens = 51 // 30 were used, 10 of them by an attempt that is set aside
	out, err := h.runner.Run(t.Context(), resumed.Prepared)
	if err != nil || out.Budget == nil || model.calls.Load() != 6 || out.Budget.Spent.Tokens() != 60 {
		t.Fatalf("%v: %+v after %d calls", err, out.Budget, model.calls.Load())
	}
	if err := os.Remove(filepath.Join(h.dir(), journal.File)); err != nil {
		t.Fatal(err)
	}
	// Without the journal only results tell: two whole trials and one call.
	out, err = h.runner.Run(t.Context(), h.goOn(t).Prepared)
	if err != nil || model.calls.Load() != 7 || out.Progress.Spent.Tokens() != 60 {
		t.Fatalf("%v: %+v after %d calls", err, out.Progress.Spent, model.calls.Load())
	}
}

// TestJobBudgetOfUnknownUse: what earlier runs did not tell is said to be unknown.
func TestJobBudgetOfUnknownUse(t *testing.T) {
	t.Parallel()
	model := &shy{mute: true}
	h := budgetHarness(t, model)
	h.runner.Budget.Tokens = 1
	if out := h.run(t); out.Budget == nil || model.calls.Load() != 1 {
		t.Fatalf("budget %v after %d calls", out.Budget, model.calls.Load())
	}
	h.warnings()
	h.runner.Budget.Tokens = 1 << 40
	if _, err := h.runner.Run(t.Context(), h.goOn(t).Prepared); err != nil {
		t.Fatal(err)
	}
	if w := h.warnings(); len(w) != 1 || !strings.Contains(w[0], "what 1 earlier attempt used is not known") {
		t.Errorf("warnings %q", w)
	}
}

// TestBudgetEndsWithTheJob: a budget that the last call of the last trial uses up is no
// interruption, and a trial's budget none of the job; retries need the budget, too.
func TestBudgetEndsWithTheJob(t *testing.T) {
	t.Parallel()
	h := budgetHarness(t, &shy{})
	h.runner.Budget.Tokens = 80
	if out := h.run(t); out.Interrupted || out.Budget != nil || out.Result.FinishedAt == nil {
		t.Errorf("outcome %+v", out)
	}
	h = budgetHarness(t, &shy{})
	h.runner.Trials.Budget.Tokens = 10
	h.cfg.Retry.MaxRetries = 3
	out := h.run(t)
	if out.Interrupted || out.Result.Stats.NErroredTrials != 4 || out.Result.Stats.NRetries != 0 || out.Models.Solved != 4 {
		t.Errorf("outcome %+v", out)
	}
}

// TestJobBudgetCancels: trials that had begun and are left no call are no results, and run
// when the job is resumed.
func TestJobBudgetCancels(t *testing.T) {
	t.Parallel()
	model := &shy{}
	h := budgetHarness(t, model)
	h.cfg.NConcurrentTrials = 4
	h.runner.Budget.Tokens = 10
	first := make(chan struct{})
	end := sync.OnceFunc(func() { close(first) })
	h.runner.Emit = func(e job.Event) {
		if e.Trial != nil && e.Trial.Kind == trial.EventEnd {
			end()
		}
	}
	var opened atomic.Int64
	begun := make(chan struct{}) // all four
	h.runner.Trials.Models = llm.OpenerFunc(func(string, llm.Options) (llm.Model, error) {
		switch opened.Add(1) {
		case 1:
			<-begun
			return model, nil
		case 4:
			close(begun)
		}
		<-first
		return model, nil
	})
	out := h.run(t)
	got := exceptionsOf(out.Records)
	slices.Sort(got)
	want := []string{exception.BudgetExceededError, exception.CancelledError, exception.CancelledError, exception.CancelledError}
	if !slices.Equal(got, want) || out.Budget == nil || !out.Interrupted || out.Progress.Pending != 0 || model.calls.Load() != 1 {
		t.Fatalf("exceptions %q, outcome %+v", got, out)
	}
	resumed := h.goOn(t)
	if len(resumed.Existing) != 1 || len(resumed.Remaining) != 3 {
		t.Errorf("%d kept, %d to run", len(resumed.Existing), len(resumed.Remaining))
	}
	h.runner.Budget.Tokens = 1000
	last, err := h.runner.Run(t.Context(), resumed.Prepared)
	if err != nil || last.Interrupted || last.Result.Stats.NErroredTrials != 1 || last.Models.Solved != 4 {
		t.Errorf("%v: %+v", err, last)
	}
}

// TestJobBudgetOfManyAtOnce: each trial under way makes at most one call too many.
func TestJobBudgetOfManyAtOnce(t *testing.T) {
	t.Parallel()
	h := budgetHarness(t, &shy{})
	h.cfg.NAttempts, h.cfg.NConcurrentTrials = 8, 4
	h.runner.Budget.Tokens = 100
	out := h.run(t)
	if out.Budget == nil || out.Progress.Spent.Tokens() < 100 || out.Progress.Spent.Tokens() > 130 {
		t.Errorf("budget %v, spent %+v", out.Budget, out.Progress.Spent)
	}
	h.runner.Budget = llm.Budget{}
	last, err := h.runner.Run(t.Context(), h.goOn(t).Prepared)
	if err != nil || last.Interrupted || len(last.Records) != 32 || last.Result.Stats.NCancelledTrials != 0 {
		t.Errorf("%v: %+v", err, last)
	}
}
