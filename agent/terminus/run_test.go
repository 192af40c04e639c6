package terminus

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/value"
)

// Row 17 of the checklist.
func TestOneCommandThenTwoCompletions(t *testing.T) {
	t.Parallel()
	b := newBench(t, says(lsJSON, doneJSON, doneJSON))
	b.terminal.prints = func(string) string { return "file\n" }
	result := b.must()
	steps := b.steps()
	if got := sources(steps); got != "user agent agent agent" {
		t.Fatalf("the steps are %s", got)
	}
	if got := steps[0].Message.Text; !strings.HasSuffix(got, "Task Description:\nDo it.\n\nCurrent terminal state:\nCurrent Terminal Screen:\n$ \n\n") {
		t.Errorf("the first prompt is %q", got)
	}
	if got := observed(t, steps[1]); got != "New Terminal Output:\n$ ls\nfile\n$ \n\n" {
		t.Errorf("the first observation is %q", got)
	}
	confirm := observed(t, steps[2])
	if !strings.HasPrefix(confirm, "Current terminal state:\nNew Terminal Output:\n") || !strings.Contains(confirm, `"task_complete": true`) || !strings.Contains(confirm, "graded") {
		t.Errorf("the question is %q", confirm)
	}
	if got := observed(t, steps[3]); !strings.HasPrefix(got, "New Terminal Output:\n") {
		t.Errorf("the last observation is %q", got)
	}
	if want := []string{observed(t, steps[1]), confirm}; !slices.Equal(b.prompts()[1:], want) {
		t.Errorf("the model was asked %q, want %q", b.prompts()[1:], want)
	}
	first := steps[1]
	if first.Message.Text != "Analysis: seen\nPlan: look" || len(first.ToolCalls) != 1 || first.ToolCalls[0].ID != "call_0_1" ||
		first.ToolCalls[0].FunctionName != "bash_command" || value.Repr(first.ToolCalls[0].Arguments) != `{'keystrokes': 'ls\n', 'duration': 0.5}` {
		t.Errorf("the first step is %+v", first)
	}
	if last := steps[3]; last.Message.Text != "Analysis: good" || len(last.ToolCalls) != 1 || last.ToolCalls[0].ID != "call_2_task_complete" {
		t.Errorf("the last step is %+v", last)
	}
	if *result.InputTokens != 30 || *result.OutputTokens != 15 || *result.CacheTokens != 0 || result.CostUSD != nil || result.Rollouts == nil || len(result.Rollouts) != 0 {
		t.Errorf("the result is %+v", result)
	}
	if got := value.Repr(result.Metadata); got != "{'n_episodes': 3, 'api_request_times_msec': [0.0, 0.0, 0.0], 'summarization_count': 0}" {
		t.Errorf("the metadata are %s", got)
	}
	if want := []time.Duration{500 * time.Millisecond}; !slices.Equal(b.waits, want) {
		t.Errorf("it waited %v, want %v", b.waits, want)
	}
}

// Row 18 of the checklist.
func TestCompletionSurvivesJunk(t *testing.T) {
	t.Parallel()
	b := newBench(t, says(doneJSON, junk, doneJSON))
	b.must()
	if got := sources(b.steps()); got != "user agent agent agent" {
		t.Errorf("the steps are %s", got)
	}
}

// Row 19 of the checklist.
func TestCommandsTakeACompletionBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, says(doneJSON, lsJSON, doneJSON, doneJSON))
	b.must()
	steps := b.steps()
	if len(steps) != 5 || !strings.Contains(observed(t, steps[3]), "Do you really want to finish?") {
		t.Errorf("the steps are %s", sources(steps))
	}
}

// Row 20 of the checklist.
func TestJunk(t *testing.T) {
	t.Parallel()
	b := newBench(t, says(junk, doneJSON, doneJSON))
	b.must()
	s := b.steps()[1]
	if got := observed(t, s); !strings.HasPrefix(got, "Previous response had parsing errors:\nERROR: ") ||
		!strings.HasSuffix(got, "\n\nPlease fix these issues and provide a proper JSON response.") || got != b.prompts()[1] {
		t.Errorf("it observed %q", got)
	}
	if s.Message.Text != junk || s.ToolCalls != nil {
		t.Errorf("the step is %+v", s)
	}
}

// Row 21 of the checklist.
func TestWarnings(t *testing.T) {
	t.Parallel()
	b := newBench(t, says(`{"analysis":"a","plan":"p","commands":[{"keystrokes":"ls\n"}]}`, doneJSON, doneJSON))
	b.must()
	if got := observed(t, b.steps()[1]); !strings.HasPrefix(got, "Previous response had warnings:\nWARNINGS: - ") || !strings.Contains(got, "\n\nNew Terminal Output:\n") {
		t.Errorf("it observed %q", got)
	}
	if want := []time.Duration{time.Second}; !slices.Equal(b.waits, want) {
		t.Errorf("it waited %v, want %v", b.waits, want)
	}
}

// Row 22 of the checklist.
func TestLongDuration(t *testing.T) {
	t.Parallel()
	b := newBench(t, says(`{"analysis":"a","plan":"p","commands":[{"keystrokes":"ls\n","duration":600},{"keystrokes":"","duration":-4},{"keystrokes":"C-c","duration":60.0}]}`, doneJSON, doneJSON))
	b.must()
	if want := []time.Duration{time.Minute, time.Minute}; !slices.Equal(b.waits, want) {
		t.Errorf("it waited %v, want %v", b.waits, want)
	}
	var durations []string
	for _, c := range b.steps()[1].ToolCalls {
		d, _ := c.Arguments.Get("duration")
		durations = append(durations, value.Repr(d))
	}
	if want := []string{"60", "-4.0", "60.0"}; !slices.Equal(durations, want) {
		t.Errorf("the durations are %v, want %v", durations, want)
	}
	if want := []string{"ls\n", "", "C-c"}; !slices.Equal(b.terminal.keys(), want) {
		t.Errorf("it typed %q, want %q", b.terminal.keys(), want)
	}
}

// Row 23 of the checklist.
func TestShellExits(t *testing.T) {
	t.Parallel()
	b := newBench(t, says(`{"analysis":"a","plan":"p","commands":[{"keystrokes":"exit\n","duration":0}]}`, lsJSON))
	b.must()
	if got := sources(b.steps()); got != "user agent" || len(b.script.Requests()) != 1 {
		t.Errorf("the steps are %s, after %d requests", got, len(b.script.Requests()))
	}
}

// TestKeysWithoutShell: what cannot be typed any more ends the run, and what the model
// said is kept.
func TestKeysWithoutShell(t *testing.T) {
	t.Parallel()
	b := newBench(t, says(`{"analysis":"a","plan":"p","commands":[{"keystrokes":"exit\n","duration":0},{"keystrokes":"ls\n","duration":0}]}`))
	_, err := b.run()
	if exception.TypeOf(err) != exception.RuntimeError || !strings.Contains(err.Error(), "failed to send non-blocking keys") {
		t.Errorf("got %v", err)
	}
	if got := b.steps(); sources(got) != "user agent" || got[1].Observation != nil {
		t.Errorf("the steps are %s", sources(got))
	}
}

// Row 24 of the checklist.
func TestMaxTurns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		settings []any
		want     int
	}{
		{[]any{"max_turns", "1", "max_episodes", "2", "episodes", "3"}, 1},
		{[]any{"max_episodes", "2", "episodes", "3"}, 2},
		{[]any{"episodes", "3"}, 3},
	} {
		b := newBench(t, repeat(llmtest.Say(lsJSON), 5), c.settings...)
		b.must()
		if got := len(b.steps()) - 1; got != c.want || len(b.warnings) != 1 {
			t.Errorf("%v: %d steps of the agent, want %d; warnings %q", c.settings, got, c.want, b.warnings)
		}
	}
	b := newBench(t, says(lsJSON), "max_turns", "1", "suppress_max_turns_warning", "true")
	if b.must(); len(b.warnings) != 0 {
		t.Errorf("it warns %q", b.warnings)
	}
}

// Row 28 of the checklist.
func TestTooLongWithoutSummaries(t *testing.T) {
	t.Parallel()
	b := newBench(t, []llmtest.Answer{fails(llm.ContextLength)}, "enable_summarize", "false")
	if _, err := b.run(); exception.TypeOf(err) != "ContextLengthExceededError" || len(b.script.Requests()) != 1 {
		t.Errorf("got %v after %d requests", err, len(b.script.Requests()))
	}
}

// Row 29 of the checklist.
func TestAnswerCutOff(t *testing.T) {
	t.Parallel()
	for limit, part := range map[int64]string{0: "the maximum output length", 500: "500 tokens"} {
		b := newBench(t, append([]llmtest.Answer{cutOff(`{"analysis":"a`)}, says(doneJSON, doneJSON)...))
		b.script.About.OutputLimit = limit
		result := b.must()
		requests := b.script.Requests()
		follow := requests[1].Messages
		if len(follow) != 3 || follow[1].Text() != `{"analysis":"a` {
			t.Fatalf("the follow-up has %d messages", len(follow))
		}
		if got := follow[2].Text(); !strings.Contains(got, "Nothing of it has been executed") || !strings.Contains(got, part) || !strings.Contains(got, "WARNINGS: - ") {
			t.Errorf("the follow-up is %q", got)
		}
		if *result.InputTokens != 20 {
			t.Errorf("%d tokens are counted, want those of two answers", *result.InputTokens)
		}
	}
}

// TestAnswersCutOffWithoutEnd: the tries are bounded.
func TestAnswersCutOffWithoutEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t, repeat(cutOff(""), 50))
	if _, err := b.run(); exception.TypeOf(err) != "OutputLengthExceededError" || len(b.script.Requests()) != maxCutOff {
		t.Errorf("got %v after %d requests", err, len(b.script.Requests()))
	}
}

// TestSalvage: what is whole of an answer in tags is used (section 10, deviation 2).
func TestSalvage(t *testing.T) {
	t.Parallel()
	const whole = `<response><analysis>a</analysis><plan>p</plan><commands><keystrokes duration="1">ls
</keystrokes></commands></response>`
	const done = "<response><analysis>a</analysis><plan>p</plan><commands></commands><task_complete>true</task_complete></response>"
	b := newBench(t, append([]llmtest.Answer{cutOff(whole + "and the")}, says(done, done)...), "parser_name", "xml")
	b.must()
	if got := sources(b.steps()); got != "user agent agent agent" || !slices.Equal(b.terminal.keys(), []string{"ls\n"}) {
		t.Errorf("the steps are %s, it typed %q", got, b.terminal.keys())
	}
	if got := b.script.Requests()[1].Messages[1].Text(); got != whole {
		t.Errorf("the history has %q", got)
	}
	if got := observed(t, b.steps()[2]); !strings.Contains(got, "<task_complete>true</task_complete>") {
		t.Errorf("the question is %q", got)
	}
}

// Row 30 of the checklist; the model itself makes three requests of each where that may
// help.
func TestProviderFails(t *testing.T) {
	t.Parallel()
	for kind, want := range map[llm.Kind]string{llm.Transient: "APIConnectionError", llm.Auth: "AuthenticationError", llm.RateLimited: "RateLimitError"} {
		b := newBench(t, repeat(fails(kind), 9))
		result, err := b.run()
		if exception.TypeOf(err) != want || len(b.script.Requests()) != queryAttempts {
			t.Errorf("%s: got %v after %d requests", kind, err, len(b.script.Requests()))
		}
		if got := sources(b.steps()); got != "user" || *result.InputTokens != 0 {
			t.Errorf("the steps are %s, the result %+v", got, result)
		}
	}
	b := newBench(t, append(repeat(fails(llm.Transient), 2), says(doneJSON, doneJSON)...))
	b.must()
}

// TestOverBudget: a call that the budget forbids is made once, also in place of a summary.
func TestOverBudget(t *testing.T) {
	t.Parallel()
	spent := llmtest.Answer{Err: &llm.BudgetError{Of: llm.OfTrial, Budget: llm.Budget{Tokens: 1}, Spent: llm.Spent{}}}
	for _, before := range [][]llmtest.Answer{{fails(llm.ContextLength)}, nil} {
		b := newBench(t, slices.Concat(says(lsJSON), before, []llmtest.Answer{spent}, says(doneJSON, doneJSON)))
		if _, err := b.run(); exception.TypeOf(err) != "BudgetExceededError" || len(b.script.Requests()) != 2+len(before) {
			t.Errorf("got %v after %d requests", err, len(b.script.Requests()))
		}
	}
}

// Row 31 of the checklist.
func TestRawContent(t *testing.T) {
	t.Parallel()
	b := newBench(t, says(lsJSON, doneJSON, doneJSON), "trajectory_config", `{"raw_content":true}`)
	b.must()
	for i, want := range []string{lsJSON, doneJSON, doneJSON} {
		if s := b.steps()[i+1]; s.Message.Text != want || s.ToolCalls != nil || s.Observation == nil {
			t.Errorf("step %d is %+v", i+2, s)
		}
	}
}

// Row 33 of the checklist.
func TestCacheMarks(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{"x/Claude-1": "--+++", "p/m": "-----"} {
		b := newBench(t, says(lsJSON, lsJSON, doneJSON, doneJSON), "model", model)
		b.must()
		got := ""
		for _, m := range b.script.Requests()[2].Messages {
			if m.Cache {
				got += "+"
			} else {
				got += "-"
			}
		}
		if got != want {
			t.Errorf("%s: the marks are %s, want %s", model, got, want)
		}
	}
}

// Row 34 of the checklist, as far as it is the agent's.
func TestThinking(t *testing.T) {
	t.Parallel()
	b := newBench(t, says(doneJSON, doneJSON), "max_thinking_tokens", "10", "temperature", "0.5", "reasoning_effort", "high")
	b.must()
	if r := b.script.Requests()[0]; r.ThinkingTokens != 1024 || *r.Temperature != 0.5 || r.Effort != "high" || r.SessionID != "" || r.Tokens {
		t.Errorf("the request is %+v", r)
	}
	if extra := value.Repr(b.trajectory("trajectory.json").Agent.Extra); extra != "{'parser': 'json', 'temperature': 0.5}" {
		t.Errorf("the agent is %s", extra)
	}
}

// Row 36 of the checklist.
func TestTrajectoryFile(t *testing.T) {
	t.Parallel()
	first := llmtest.Say(`{"analysis":"ä","plan":"","commands":[]}`)
	first.Response.PromptTokenIDs, first.Response.CompletionTokenIDs, first.Response.LogProbs = []int64{1, 2}, []int64{3, 4}, []float64{-0.5, -1}
	first.Response.Model, first.Response.Cost = "served", new(0.25)
	first.Response.Usage.Cached = 7
	first.Response.Extra = value.NewObject(1)
	first.Response.Extra.Set("x", value.NewInt(1))
	b := newBench(t, append([]llmtest.Answer{first}, says(doneJSON, doneJSON)...), "collect_rollout_details", "true", "session_id", "mine")
	result := b.must()
	text := b.file("trajectory.json")
	for _, part := range []string{`"prompt_token_ids": [1, 2]`, `"completion_token_ids": [3, 4]`, `"logprobs": [-0.5, -1.0]`, `Analysis: \u00e4`, `"model_name": "served"`,
		`"session_id": "mine"`, `"timestamp": "2026-01-02T03:04:05+00:00"`, `"total_cost_usd": 0.25`, `"total_cached_tokens": 7`} {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %s in\n%s", part, text)
		}
	}
	if strings.Contains(text, "null") || strings.Contains(text, "total_steps") || strings.HasSuffix(text, "\n") {
		t.Errorf("the file is\n%s", text)
	}
	if got := value.Repr(result.Rollouts); got != "[{'prompt_token_ids': [[1, 2]], 'completion_token_ids': [[3, 4]], 'logprobs': [[-0.5, -1.0]], 'extra': {'x': [1]}}]" {
		t.Errorf("the rollouts are %s", got)
	}
	if *result.CostUSD != 0.25 || *result.CacheTokens != 7 {
		t.Errorf("the result is %+v", result)
	}
	if r := b.script.Requests()[0]; !r.Tokens || r.SessionID != "mine" {
		t.Errorf("the request is %+v", r)
	}
}

func TestStoredMessages(t *testing.T) {
	t.Parallel()
	b := newBench(t, says(doneJSON, doneJSON), "store_all_messages", "true")
	list, _ := b.must().Metadata.Get("all_messages")
	messages, _ := list.(value.List)
	if len(messages) != 4 {
		t.Fatalf("got %s", value.Repr(list))
	}
	if got := value.Repr(messages[1]); got != "{'role': 'assistant', 'content': "+value.Repr(value.Str(doneJSON))+"}" {
		t.Errorf("got %s", got)
	}
}

// TestInterleavedThinking: what the model thought is sent back if that is asked for, and
// noted in any case.
func TestInterleavedThinking(t *testing.T) {
	t.Parallel()
	for _, on := range []string{"true", "false"} {
		first := llmtest.Say(doneJSON)
		first.Response.Message.Reasoning = "hm"
		first.Response.Message.Native = &llm.Native{API: llm.Anthropic, Content: []byte("{}")}
		b := newBench(t, append([]llmtest.Answer{first}, says(doneJSON)...), "interleaved_thinking", on)
		b.must()
		r := b.script.Requests()[1]
		if sent := r.Messages[1]; r.SendReasoning != (on == "true") || (sent.Reasoning == "hm") != (on == "true") || (sent.Native != nil) != (on == "true") {
			t.Errorf("%s: sent %+v", on, sent)
		}
		if got := b.steps()[1].ReasoningContent; got == nil || *got != "hm" {
			t.Errorf("noted %v", got)
		}
	}
}

// TestResponsesProtocol: only what is new is sent, until the conversation is changed.
func TestResponsesProtocol(t *testing.T) {
	t.Parallel()
	answers := append(says(lsJSON, doneJSON), cutOff("{"), llmtest.Say(doneJSON))
	answers[0].Response.ID, answers[1].Response.ID = "r1", "r2"
	var opened llm.Options
	b := newBench(t, answers, "use_responses_api", "true")
	c := config("use_responses_api", "true")
	c.Models = llm.OpenerFunc(func(_ string, o llm.Options) (llm.Model, error) { opened = o; return b.script, nil })
	if _, err := newAgent(c, surroundings{}); err != nil || opened.API != llm.Responses {
		t.Errorf("opened with %q, %v", opened.API, err)
	}
	b.must()
	var got []string
	for _, r := range b.script.Requests() {
		got = append(got, r.PreviousID+strings.Repeat("m", len(r.Messages)))
	}
	if want := []string{"m", "r1m", "r2m", "mmmmmmm"}; !slices.Equal(got, want) {
		t.Errorf("sent %v, want %v", got, want)
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	cause := errors.New("time is up")
	ctx, cancel := context.WithCancelCause(t.Context())
	b := newBench(t, says(lsJSON))
	b.setup()
	b.sleep = func(ctx context.Context, _ time.Duration) error {
		cancel(cause)
		return context.Cause(ctx)
	}
	result, err := b.again(ctx)
	if !errors.Is(err, cause) || *result.InputTokens != 10 || *result.OutputTokens != 5 {
		t.Errorf("got %v, %+v", err, result)
	}
	if got := sources(b.steps()); got != "user agent" {
		t.Errorf("the steps are %s", got)
	}
}

// TestSecondInstruction: the terminal and what is remembered of it stay, everything else
// begins anew.
func TestSecondInstruction(t *testing.T) {
	t.Parallel()
	b := newBench(t, says(doneJSON, doneJSON, doneJSON, doneJSON))
	b.must()
	result, err := b.again(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := sources(b.steps()); got != "user agent agent" || *result.InputTokens != 20 {
		t.Errorf("the steps are %s, the result %+v", got, result)
	}
	if got := b.steps()[0].Message.Text; !strings.HasSuffix(got, "New Terminal Output:\n$ \n\n\n") {
		t.Errorf("the first prompt ends with %q", got[len(got)-80:])
	}
	if len(b.script.Requests()[2].Messages) != 1 {
		t.Error("the conversation went on")
	}
}

func TestEquipment(t *testing.T) {
	t.Parallel()
	b := newBench(t, says(doneJSON, doneJSON))
	b.env.MCPServers = []agent.MCPServer{
		{Name: "a", Transport: "stdio", Command: "run", Args: []string{"x", "y"}}, {Name: "b", Transport: "sse", URL: "http://b"},
	}
	b.must()
	got := b.steps()[0].Message.Text
	if !strings.Contains(got, "Do it.\n\nMCP Servers:\n") || !strings.Contains(got, "\n- a: stdio transport, command: run x y\n- b: sse transport, url: http://b\n") {
		t.Errorf("the prompt is %q", got)
	}
}

// TestLongKeys: what is longer than tmux takes is typed in parts.
func TestLongKeys(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("it's ", 20_000)
	b := newBench(t, says(`{"analysis":"a","plan":"p","commands":[{"keystrokes":"`+long+`","duration":0}]}`, doneJSON, doneJSON))
	b.must()
	if got := strings.Join(b.terminal.keys(), ""); got != long {
		t.Errorf("it typed %d bytes of %d", len(got), len(long))
	}
	for _, c := range b.terminal.commands {
		if len(c.Shell) > 100_000 {
			t.Errorf("a command of %d bytes", len(c.Shell))
		}
	}
}

// TestSecrets: trajectories are written without them.
func TestSecrets(t *testing.T) {
	t.Parallel()
	b := newBench(t, says(doneJSON, doneJSON))
	b.env.Redact = hide
	b.must()
	if text := b.file("trajectory.json"); strings.Contains(text, "good") || !strings.Contains(text, "GONE") {
		t.Errorf("the file is\n%s", text)
	}
}

// TestUnwritableLog: a trajectory that cannot be kept is told once, and ends nothing.
func TestUnwritableLog(t *testing.T) {
	t.Parallel()
	b := newBench(t, says(lsJSON, doneJSON, doneJSON))
	b.env.LogDir += "/absent"
	b.must2(t)
}

// TestTerminalEndedWithItsStep: a terminal that was ended with the step before is opened
// anew; one whose shell was left is not.
func TestTerminalEndedWithItsStep(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	b := newBench(t, says(lsJSON, doneJSON, doneJSON))
	b.setup()
	b.sleep = func(ctx context.Context, _ time.Duration) error {
		b.terminal.running = false // by whoever set the deadline
		cancel(errors.New("time is up"))
		return context.Cause(ctx)
	}
	if _, err := b.again(ctx); err == nil {
		t.Fatal("it was not ended")
	}
	if _, err := b.again(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.steps(); sources(got) != "user agent agent" || !strings.HasSuffix(got[0].Message.Text, "Current Terminal Screen:\n$ \n\n") {
		t.Errorf("the steps are %s", sources(got))
	}
	b.terminal.running = false
	if _, err := b.again(t.Context()); err != nil || sources(b.steps()) != "user" {
		t.Errorf("got %v, %s", err, sources(b.steps()))
	}
}

// TestLongScreens: where only the end of what was shown is remembered, what is new is
// found by it.
func TestLongScreens(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("x", 99) + "\n"
	long := strings.Repeat(line, 2*maxRemembered/len(line)) + "last\n$"
	var s screenState
	s.show(capture{full: long})
	if got := s.show(capture{full: long + " ls\nfile\n$\n"}); got != "New Terminal Output:\n\n$ ls\nfile\n$\n" {
		t.Errorf("got %d bytes: %q", len(got), lastCharacters(got, 100))
	}
	if len(s.previous) > maxRemembered {
		t.Errorf("%d bytes are remembered", len(s.previous))
	}
	var short screenState
	short.show(capture{full: "b\nc\n$", cut: true})
	if got := short.show(capture{full: "a\nb\nc\n$ d\n", cut: true}); got != "New Terminal Output:\n\n$ d\n" {
		t.Errorf("got %q", got)
	}
}
