package tools_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/value"
)

func TestOverflow(t *testing.T) {
	t.Parallel()
	tooLong := llmtest.Answer{Err: &llm.Error{Kind: llm.ContextLength, Model: "m"}}
	look := func(id string) llmtest.Answer { return llmtest.Call(call(id, "look", `{"at": "x"}`)) }
	for _, c := range []struct {
		name     string
		failures int
		want     string
	}{{"once", 1, ""}, {"twice", 2, ""}, {"three times", 3, "ContextLengthExceededError"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			script := &llmtest.Script{Answers: []llmtest.Answer{look("a"), look("b"), look("c")}}
			script.Answers = append(append(script.Answers, slices.Repeat([]llmtest.Answer{tooLong}, c.failures)...), look("d"))
			g := newGame(t, script)
			g.act(cube.Text("The task."))
			for _, id := range []string{"a", "b"} {
				g.act(answerTo(id, id+strings.Repeat("0123456789", 10_000)))
			}
			_, err := g.agent.Act(t.Context(), cube.Observe(answerTo("c", strings.Repeat("9876543210", 10_000))), offered())
			if exception.TypeOf(err) != c.want {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			requests := g.script.Requests()
			for i := 4; i < len(requests); i++ {
				before, now := len(transcript(requests[i-1].Messages)), len(transcript(requests[i].Messages))
				if now > before*6/10 {
					t.Errorf("call %d has %d bytes after %d", i, now, before)
				}
				contains(t, g.asked(i), "user: The task.")
				checkPairs(t, requests[i].Messages)
			}
			if r, _ := g.report(); r.Metadata.Has("context") != true {
				t.Errorf("metadata %s", value.Repr(r.Metadata))
			}
		})
	}
}

// TestFit: no call has more than fits into the model, and the task stays.
func TestFit(t *testing.T) {
	t.Parallel()
	const limit = 4000
	script := &llmtest.Script{About: llm.Info{Name: "m", InputLimit: limit}}
	for range 40 {
		a := llmtest.Call(call("", "look", `{"at": "x"}`))
		a.Response.Usage = nil
		script.Answers = append(script.Answers, a)
	}
	g := newGame(t, script)
	actions := g.act(cube.Text("The task."))
	for range 39 {
		actions = g.act(answerTo(*actions[0].ID, strings.Repeat("word ", 500)))
	}
	for i, r := range script.Requests() {
		if n := len(transcript(r.Messages)) / 4; n > limit {
			t.Errorf("call %d has %d tokens", i, n)
		}
		checkPairs(t, r.Messages)
	}
	contains(t, g.asked(39), "user: The task.[Your first ", "bytes are left out here]")
	r, made := g.report()
	if r.InputTokens != nil || len(made.Steps) != 42 {
		t.Errorf("tokens %v, %d steps", r.InputTokens, len(made.Steps))
	}
	if made.Steps[2].Observation.Results[0].Content.Text != strings.Repeat("word ", 500) {
		t.Error("the trajectory has only what the model was last shown")
	}
}

// TestBudget: the agent stops when its tokens are used up.
