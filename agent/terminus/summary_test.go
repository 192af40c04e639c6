package terminus

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/value"
)

// tooLongAtFourth are three episodes, a conversation that is too long, and the three
// calls of a summary; then the end.
func tooLongAtFourth() []llmtest.Answer {
	return slices.Concat(says(lsJSON, lsJSON, lsJSON), []llmtest.Answer{fails(llm.ContextLength)},
		says("the summary", "the questions", "the answers", doneJSON, doneJSON))
}

// Row 25 of the checklist.
func TestSummary(t *testing.T) {
	t.Parallel()
	b := newBench(t, tooLongAtFourth())
	result := b.must()
	steps := b.steps()
	if got := sources(steps); got != "user agent agent agent system user agent agent" {
		t.Fatalf("the steps are %s", got)
	}
	var refs []string
	for _, ref := range steps[4].Observation.Results[0].Subagents {
		summary, _ := ref.Extra.Get("summary")
		if !strings.HasPrefix(value.Text(summary), "Context summarization 1: Step ") {
			t.Errorf("a ref tells %v", summary)
		}
		if got := b.trajectory(*ref.TrajectoryPath); *got.SessionID != *ref.SessionID {
			t.Errorf("%s is of session %s", *ref.TrajectoryPath, *got.SessionID)
		}
		refs = append(refs, *ref.TrajectoryPath)
	}
	want := []string{"trajectory.summarization-1-summary.json", "trajectory.summarization-1-questions.json", "trajectory.summarization-1-answers.json"}
	if !slices.Equal(refs, want) {
		t.Errorf("the refs are %v", refs)
	}
	handoff := steps[5].Message.Text
	if !strings.Contains(handoff, "the answers") || steps[4].Message.Text != "Performed context summarization and handoff to continue task." {
		t.Errorf("the hand-off is %q", handoff)
	}
	if *result.InputTokens != 80 || *result.OutputTokens != 40 {
		t.Errorf("the result is %+v, want the tokens of 8 answers", result)
	}
	if n, _ := steps[6].Metrics.PromptTokens.Int64(); n != 10 {
		t.Errorf("the step after it used %d tokens", n)
	}
	if got, _ := result.Metadata.Get("summarization_count"); value.Repr(got) != "1" {
		t.Errorf("the metadata are %s", value.Repr(result.Metadata))
	}
	if times, _ := result.Metadata.Get("api_request_times_msec"); len(times.(value.List)) != 8 {
		t.Errorf("there are times of %d requests", len(times.(value.List)))
	}
	checkSubagents(t, b)
	checkSummaryRequests(t, b, handoff)
}

func checkSubagents(t *testing.T, b *bench) {
	t.Helper()
	for name, want := range map[string]string{
		"summary": "user* agent* agent* user agent", "questions": "user agent", "answers": "user* agent* agent* user* agent* user agent",
	} {
		got := b.trajectory("trajectory.summarization-1-" + name + ".json")
		if sources(got.Steps) != want || got.Agent.Name != "terminus-2-summarization-"+name || *got.SessionID != "id-summarization-1-"+name {
			t.Errorf("%s: %s, %s, %s", name, got.Agent.Name, *got.SessionID, sources(got.Steps))
		}
		if extra := value.Repr(got.Agent.Extra); extra != "{'parent_session_id': 'id', 'summarization_index': 1}" {
			t.Errorf("%s: %s", name, extra)
		}
		last := got.Steps[len(got.Steps)-1]
		if last.Message.Text != "the "+name || last.Metrics == nil || last.Metrics.CachedTokens == nil {
			t.Errorf("%s ends with %+v", name, last)
		}
		if n, _ := got.FinalMetrics.PromptTokens.Int64(); n != 10 {
			t.Errorf("%s used %d tokens", name, n)
		}
		for _, s := range got.Steps {
			if s.IsCopiedContext != nil && (s.Metrics != nil || s.Source == atif.Agent && s.Observation != nil && !s.Extra.Has("note")) {
				t.Errorf("%s: step %d is %+v", name, s.ID, s)
			}
		}
	}
	if b.steps()[1].Extra != nil || b.steps()[1].Metrics == nil {
		t.Error("the steps of the trajectory itself were changed")
	}
}

func checkSummaryRequests(t *testing.T, b *bench, handoff string) {
	t.Helper()
	var sizes []int
	requests := b.script.Requests()
	for _, r := range requests {
		sizes = append(sizes, len(r.Messages))
	}
	if want := []int{1, 3, 5, 7, 7, 1, 9, 4, 6}; !slices.Equal(sizes, want) {
		t.Fatalf("the requests have %v messages, want %v", sizes, want)
	}
	after := requests[7].Messages
	if after[0].Text() != requests[0].Messages[0].Text() || after[1].Text() != requests[5].Messages[0].Text() || after[2].Text() != "the questions" || after[3].Text() != handoff {
		t.Errorf("after the summary it sends %v", after)
	}
	if q := requests[5].Messages[0].Text(); !strings.Contains(q, "Do it.") || !strings.Contains(q, "the summary") || !strings.Contains(q, "$ ls") {
		t.Errorf("the questions are asked with %q", q)
	}
}

// Row 26 of the checklist.
func TestLinearHistory(t *testing.T) {
	t.Parallel()
	b := newBench(t, tooLongAtFourth(), "trajectory_config", `{"linear_history":true}`)
	b.must()
	first, second := b.trajectory("trajectory.json"), b.trajectory("trajectory.cont-1.json")
	if first.ContinuedTrajectoryRef == nil || *first.ContinuedTrajectoryRef != "trajectory.cont-1.json" || sources(first.Steps) != "user agent agent agent system" {
		t.Errorf("the first ends with %v, %s", first.ContinuedTrajectoryRef, sources(first.Steps))
	}
	if got := sources(second.Steps); got != "user* user* agent* user* agent agent" {
		t.Errorf("the second has %s", got)
	}
	if index, _ := second.Agent.Extra.Get("continuation_index"); value.Repr(index) != "1" || *second.SessionID != "id-cont-1" || second.ContinuedTrajectoryRef != nil {
		t.Errorf("the second is %s, %s", *second.SessionID, value.Repr(second.Agent.Extra))
	}
	if second.Steps[0].Timestamp != nil || second.Steps[4].Timestamp == nil {
		t.Error("copied steps have no time, others have one")
	}
	if n, _ := second.FinalMetrics.PromptTokens.Int64(); n != 80 {
		t.Errorf("the second tells of %d tokens, want those of the run", n)
	}
}

// TestLinearHistoryTwice: each summary ends a file.
func TestLinearHistoryTwice(t *testing.T) {
	t.Parallel()
	answers := slices.Concat(says(lsJSON), []llmtest.Answer{fails(llm.ContextLength)}, says("s", "q", "a", lsJSON),
		[]llmtest.Answer{fails(llm.ContextLength)}, says("s", "q", "a", doneJSON, doneJSON))
	b := newBench(t, answers, "trajectory_config", `{"linear_history":true}`)
	b.must()
	if got := *b.trajectory("trajectory.cont-1.json").ContinuedTrajectoryRef; got != "trajectory.cont-2.json" {
		t.Errorf("the second is continued in %s", got)
	}
	if got := sources(b.trajectory("trajectory.cont-2.json").Steps); got != "user* user* agent* user* agent agent" {
		t.Errorf("the third has %s", got)
	}
	if got := *b.trajectory("trajectory.summarization-2-answers.json").SessionID; got != "id-cont-1-summarization-2-answers" {
		t.Errorf("the second summary is of session %s", got)
	}
}

// Row 27 of the checklist.
func TestSummaryFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		brief llmtest.Answer
		want  string
	}{
		"all":       {fails(llm.Transient), "Do it.\n\nCurrent state: $ "},
		"but short": {llmtest.Say("short"), "Do it.\n\nSummary: short"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, slices.Concat(says(lsJSON), []llmtest.Answer{fails(llm.ContextLength), fails(llm.Transient), c.brief}, says(doneJSON, doneJSON)))
			result := b.must()
			if got := b.prompts()[4]; !strings.HasPrefix(got, c.want) {
				t.Errorf("it goes on with %q, want %q", got, c.want)
			}
			if got := sources(b.steps()); got != "user agent agent agent" {
				t.Errorf("the steps are %s", got)
			}
			if n, _ := result.Metadata.Get("summarization_count"); value.Repr(n) != "1" {
				t.Errorf("%s summaries were begun", value.Repr(n))
			}
		})
	}
}

// TestNothingHelps: where the conversation cannot be continued at all, the model is
// asked again in an episode of its own.
func TestNothingHelps(t *testing.T) {
	t.Parallel()
	b := newBench(t, slices.Concat(says(lsJSON), repeat(fails(llm.ContextLength), 4), says(doneJSON, doneJSON)))
	b.must()
	steps := b.steps()
	if got := sources(steps); got != "user agent agent agent agent" || steps[2].Message.Text != stopgap || !strings.HasPrefix(observed(t, steps[2]), "Previous response had parsing errors:") {
		t.Errorf("the steps are %s", got)
	}
	if got := len(b.script.Requests()[5].Messages); got != 3 {
		t.Errorf("the conversation then has %d messages", got)
	}
}

// TestProactiveSummary: it comes before the conversation is too long, and what the model
// has not seen is kept (section 10, deviation 6).
func TestProactiveSummary(t *testing.T) {
	t.Parallel()
	big := llmtest.Say(lsJSON)
	big.Response.Usage = &llm.Usage{Prompt: 9000, Completion: 1}
	for name, c := range map[string]struct {
		threshold string
		limit     int64
		want      bool
	}{
		"by default":    {"8000", 17000, true},
		"not yet":       {"8000", 17001, false},
		"over":          {"0", 9000, true},
		"just not over": {"0", 9001, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := slices.Concat([]llmtest.Answer{big}, says("the summary", "the questions", "the answers", doneJSON, doneJSON))
			if !c.want {
				answers = slices.Concat([]llmtest.Answer{big}, says(doneJSON, doneJSON))
			}
			b := newBench(t, answers, "proactive_summarization_threshold", c.threshold)
			b.script.About.InputLimit = c.limit
			b.must()
			if !c.want {
				return
			}
			steps := b.steps()
			if got := sources(steps); got != "user agent system user agent agent" {
				t.Fatalf("the steps are %s", got)
			}
			if got := steps[3].Message.Text; !strings.HasSuffix(got, "\n\n"+observed(t, steps[1])) || got != b.prompts()[4] {
				t.Errorf("it goes on with %q", got)
			}
		})
	}
}

func TestProactiveSummaryFails(t *testing.T) {
	t.Parallel()
	big := llmtest.Say(lsJSON)
	big.Response.Usage = &llm.Usage{Prompt: 9000, Completion: 1}
	b := newBench(t, slices.Concat([]llmtest.Answer{big, fails(llm.Transient)}, says(doneJSON, doneJSON)))
	b.script.About.InputLimit = 17000
	b.must()
	if got := b.prompts()[2]; got != observed(t, b.steps()[1]) || len(b.warnings) != 1 {
		t.Errorf("it goes on with %q, warnings %q", got, b.warnings)
	}
}

// TestUnwinding: a conversation is made shorter before it is summarised, also where it
// was not known how long it may be.
func TestUnwinding(t *testing.T) {
	t.Parallel()
	var answers []llmtest.Answer
	for _, tokens := range []int64{5000, 10_000, 15_000, 20_000} {
		a := llmtest.Say(lsJSON)
		a.Response.Usage = &llm.Usage{Prompt: tokens, Completion: 100}
		answers = append(answers, a)
	}
	answers = slices.Concat(answers, []llmtest.Answer{fails(llm.ContextLength)}, says("s", "q", "a", doneJSON, doneJSON))
	b := newBench(t, answers)
	b.must()
	if got := len(b.script.Requests()[5].Messages); got != 7 {
		t.Errorf("%d messages are summarised, want 6 and the order to", got)
	}
	if got := sources(b.trajectory("trajectory.summarization-1-summary.json").Steps); got != "user* agent* agent* user agent" {
		t.Errorf("the summary has %s", got)
	}
}

// TestInterruptedSummary: what is not told yet of a summary is noted in the end.
func TestInterruptedSummary(t *testing.T) {
	t.Parallel()
	b := newBench(t, slices.Concat(says(lsJSON), []llmtest.Answer{fails(llm.ContextLength)}, says("s", "q", "a"), repeat(fails(llm.Auth), 5)))
	if _, err := b.run(); exception.TypeOf(err) != "AuthenticationError" {
		t.Errorf("got %v", err)
	}
	if got := sources(b.steps()); got != "user agent system user agent" {
		t.Errorf("the steps are %s", got)
	}
}

// stopping is a model that ends the run at a call.
type stopping struct {
	llm.Model
	at   int
	stop func()
}

func (m *stopping) Complete(ctx context.Context, r *llm.Request) (*llm.Response, error) {
	if m.at--; m.at == 0 {
		m.stop()
	}
	return m.Model.Complete(ctx, r)
}

// TestStoppedAnywhere: whichever call is under way, the end of the context ends the run,
// and the trajectory is there.
func TestStoppedAnywhere(t *testing.T) {
	t.Parallel()
	cause := errors.New("time is up")
	for at := 1; at <= 9; at++ {
		ctx, cancel := context.WithCancelCause(t.Context())
		b := newBench(t, tooLongAtFourth())
		b.agent.(*terminus).model = &stopping{Model: b.script, at: at, stop: func() { cancel(cause) }}
		b.setup()
		if _, err := b.again(ctx); !errors.Is(err, cause) {
			t.Errorf("at call %d: %v", at, err)
		}
		if files, err := filepath.Glob(filepath.Join(b.dir, "trajectory.json")); err != nil || len(files) != 1 {
			t.Errorf("at call %d: %v, %v", at, files, err)
		}
	}
}

// TestSubagentRollouts: each call has an entry of its own, after that of the
// conversation.
func TestSubagentRollouts(t *testing.T) {
	t.Parallel()
	answers := tooLongAtFourth()
	for i := range answers {
		if answers[i].Response != nil {
			answers[i].Response.CompletionTokenIDs = []int64{int64(i)}
		}
	}
	b := newBench(t, answers, "collect_rollout_details", "true")
	result := b.must()
	if got := value.Repr(result.Rollouts); got != "[{'completion_token_ids': [[0], [1], [2], [7], [8]]}, {'completion_token_ids': [[4]]}, {'completion_token_ids': [[5]]}, {'completion_token_ids': [[6]]}]" {
		t.Errorf("the rollouts are %s", got)
	}
}

// TestLinearHistoryWithoutAnswer: the prompt after a summary is told also where nothing
// came of it.
func TestLinearHistoryWithoutAnswer(t *testing.T) {
	t.Parallel()
	b := newBench(t, slices.Concat(says(lsJSON), []llmtest.Answer{fails(llm.ContextLength)}, says("s", "q", "a"), []llmtest.Answer{fails(llm.Transient)}, says(doneJSON, doneJSON)),
		"trajectory_config", `{"linear_history":true}`)
	b.must()
	if got := sources(b.trajectory("trajectory.cont-1.json").Steps); got != "user* user* agent* user agent agent agent" {
		t.Errorf("the second has %s", got)
	}
}

// TestTaskIsTooLong: where there is no conversation yet, there is nothing to shorten.
func TestTaskIsTooLong(t *testing.T) {
	t.Parallel()
	b := newBench(t, repeat(fails(llm.ContextLength), 5))
	if _, err := b.run(); exception.TypeOf(err) != "ContextLengthExceededError" || len(b.script.Requests()) != 2 {
		t.Errorf("got %v after %d requests", err, len(b.script.Requests()))
	}
	if got := b.prompts()[1]; got != "Do it." {
		t.Errorf("it asked again with %q", got)
	}
}
