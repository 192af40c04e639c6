package trial_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/value"
)

// working is a model that never stops; each answer uses 15 tokens.
func working(action, arguments string) *llmtest.Script {
	var answers []llmtest.Answer
	for range 50 {
		answers = append(answers, llmtest.Call(toolCall(action, arguments)))
	}
	return &llmtest.Script{About: llm.Info{Name: "test/m"}, Answers: answers}
}

// TestBudgets: a budget that is used up ends the agent's work, which is verified, like a
// time limit; what was used is known.
func TestBudgets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		bench            func(t *testing.T) *bench
		action, args     string
		trial, job       llm.Budget
		want, of, reward string
	}{
		{"Harbor's task", harborBench, "bash", `{"command": "true"}`, llm.Budget{Tokens: 40}, llm.Budget{}, exception.BudgetExceededError, "trial", "{'reward': 1.0}"},
		{"Harbor's task, the job's", harborBench, "bash", `{"command": "true"}`, llm.Budget{Tokens: 400}, llm.Budget{Tokens: 40}, exception.BudgetExceededError, "job", "{'reward': 1.0}"},
		{"a cube's", cubeBench, "look", ``, llm.Budget{Tokens: 40}, llm.Budget{}, exception.BudgetExceededError, "trial", "{'reward': 1.0}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			script := working(c.action, c.args)
			b := c.bench(t).withModel(script)
			b.Budget, b.Meter = c.trial, llm.NewMeter(llm.OfJob, c.job, nil)
			res := b.run(t)
			if got := exceptionType(res); got != c.want || rewardsText(res) != c.reward {
				t.Fatalf("exception %q, rewards %s, want %q and %s", got, rewardsText(res), c.want, c.reward)
			}
			if m := res.ExceptionInfo.Message; m != "the budget of the "+c.of+" is used up: 45 of 40 tokens spent" {
				t.Errorf("message %q", m)
			}
			if n := len(script.Requests()); n != 3 {
				t.Errorf("%d calls, want 3", n)
			}
			if a := res.AgentResult; a == nil || value.Repr(*a.NInputTokens) != "30" || value.Repr(*a.NOutputTokens) != "15" {
				t.Errorf("agent result %+v", a)
			}
			if s := b.Meter.Spent(); s.Calls != 3 || s.Tokens() != 45 {
				t.Errorf("the job's meter has %+v", s)
			}
		})
	}
}

// TestBudgetTruncatesEpisodes: the notes of an episode say that the budget ended it.
func TestBudgetTruncatesEpisodes(t *testing.T) {
	t.Parallel()
	b := cubeBench(t).withModel(working("look", ``))
	b.Budget.Tokens = 20
	b.run(t)
	data, err := os.ReadFile(filepath.Join(b.dir, "proctor.json"))
	if err != nil {
		t.Fatal(err)
	}
	var notes jobdir.Notes
	if err := json.Unmarshal(data, &notes); err != nil || notes.Episode == nil || notes.Episode.End != jobdir.EpisodeBudget || !notes.Episode.Truncated {
		t.Errorf("%v, episode %+v", err, notes.Episode)
	}
}

// TestBudgetIsOfAnAttempt: every attempt at a trial has the whole budget.
func TestBudgetIsOfAnAttempt(t *testing.T) {
	t.Parallel()
	b := harborBench(t).withModel(working("bash", `{"command": "true"}`))
	b.Budget.Tokens = 15
	for attempt := 1; attempt <= 2; attempt++ {
		res, err := b.Run(t.Context(), b.cfg, attempt)
		if err != nil {
			t.Fatal(err)
		}
		if exceptionType(res) != exception.BudgetExceededError || value.Repr(*res.AgentResult.NOutputTokens) != "5" {
			t.Errorf("attempt %d: exception %q, %+v", attempt, exceptionType(res), res.AgentResult)
		}
		if err := os.RemoveAll(b.dir); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNoBudgetIsLeft: a trial that the job's budget leaves not one call has no score: it
// is as one that was not begun. So has one with steps.
func TestNoBudgetIsLeft(t *testing.T) {
	t.Parallel()
	for name, bench := range map[string]func(*testing.T) *bench{
		"Harbor's task": harborBench, "a cube's": cubeBench,
		"steps": func(t *testing.T) *bench {
			t.Helper()
			return newBench(t, stepTask(twoSteps, "one", "two"), fake.Config{Rules: []fake.Rule{emptying(), rewardByTurn("reward.txt", "1", "1")}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := working("look", ``)
			b := bench(t).withModel(script)
			b.Meter = llm.NewMeter(llm.OfJob, llm.Budget{Tokens: 10}, nil)
			b.Meter.Add(llm.Spent{Prompt: 10})
			res := b.run(t)
			if exceptionType(res) != exception.CancelledError || res.VerifierResult != nil || len(script.Requests()) != 0 {
				t.Errorf("exception %q, result %+v, %d calls", exceptionType(res), res.VerifierResult, len(script.Requests()))
			}
		})
	}
}

// TestBudgetOfSteps: the steps of a task share the trial's budget, and each is verified.
func TestBudgetOfSteps(t *testing.T) {
	t.Parallel()
	b := newBench(t, stepTask(twoSteps, "one", "two"), fake.Config{Rules: []fake.Rule{emptying(), rewardByTurn("reward.txt", "1", "0.5")}})
	b.withModel(working("bash", `{"command": "true"}`))
	b.Budget.Tokens = 40
	res := b.run(t)
	if got := rewardsText(res); got != "{'reward': 0.75}" || len(res.StepResults) != 2 {
		t.Fatalf("rewards %s, %d steps", got, len(res.StepResults))
	}
	for _, step := range res.StepResults {
		if step.ExceptionInfo == nil || step.ExceptionInfo.Type != exception.BudgetExceededError {
			t.Errorf("step %s: exception %+v", step.StepName, step.ExceptionInfo)
		}
	}
}

// TestBudgetWithoutPrices: a budget in dollars for a model whose prices nobody knows is an
// error before the agent begins.
func TestBudgetWithoutPrices(t *testing.T) {
	t.Parallel()
	script := working("bash", `{"command": "true"}`)
	b := harborBench(t).withModel(script)
	b.Budget.USD = 5
	res := b.run(t)
	if exceptionType(res) != exception.ValueError || !strings.Contains(res.ExceptionInfo.Message, "model_info") || len(script.Requests()) != 0 {
		t.Errorf("exception %+v after %d calls", res.ExceptionInfo, len(script.Requests()))
	}
}
