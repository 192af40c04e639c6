package tools_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/tools"
	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/value"
)

// opens gives every agent one model.
func opens(m llm.Model) llm.Opener {
	return llm.OpenerFunc(func(string, llm.Options) (llm.Model, error) { return m, nil })
}

// config is that of an agent whose model follows the script, in a directory of its own.
func config(t testing.TB, m llm.Model, settings ...any) agent.Config {
	t.Helper()
	return agent.Config{
		Name: "tools", Model: "test/model", Models: opens(m), LogDir: t.TempDir(), OutputLimit: 1 << 20,
		Settings: cube.Pairs(settings...),
	}
}

// game is an agent that plays by hand.
type game struct {
	t      *testing.T
	agent  cube.Agent
	script *llmtest.Script
	dir    string
}

func newGame(t *testing.T, script *llmtest.Script, settings ...any) *game {
	t.Helper()
	c := config(t, script, settings...)
	a, err := tools.Entry().Stepped(c)
	if err != nil {
		t.Fatal(err)
	}
	return &game{t, a, script, c.LogDir}
}

// offered are an action with a required and an optional argument, and the stop action.
func offered() []cube.ActionSchema {
	return []cube.ActionSchema{
		{Name: "look", Description: "Look.", Parameters: cube.Pairs("type", "object",
			"properties", cube.Pairs("at", cube.Pairs("type", "string"), "long", cube.Pairs("type", "boolean")),
			"required", []string{"at"})},
		cube.StopAction(),
	}
}

func (g *game) act(contents ...cube.Content) []cube.Action {
	g.t.Helper()
	actions, err := g.agent.Act(g.t.Context(), cube.Observe(contents...), offered())
	if err != nil {
		g.t.Fatal(err)
	}
	return actions
}

// report ends the game, and reads the trajectory.
func (g *game) report() (agent.Result, *atif.Trajectory) {
	g.t.Helper()
	r := g.agent.(agent.Reporter).Report()
	data, err := os.ReadFile(filepath.Join(g.dir, "trajectory.json"))
	if err != nil {
		g.t.Fatal(err)
	}
	made, err := atif.Parse(data)
	if err != nil {
		g.t.Fatalf("%v\n%s", err, data)
	}
	document, err := atif.ParseJSON(data)
	if err != nil {
		g.t.Fatal(err)
	}
	missing := atif.MissingImages(document, func(path string) bool {
		_, err := os.Stat(filepath.Join(g.dir, path))
		return err == nil
	})
	if len(missing) > 0 {
		g.t.Errorf("images: %v", missing)
	}
	return r, made
}

// asked is what the n-th call was, as text: a line for each message.
func (g *game) asked(n int) string {
	g.t.Helper()
	requests := g.script.Requests()
	if n >= len(requests) {
		g.t.Fatalf("%d calls were made, want one of number %d", len(requests), n)
	}
	return transcript(requests[n].Messages)
}

func transcript(messages []llm.Message) string {
	var b strings.Builder
	for _, m := range messages {
		b.WriteString(string(m.Role))
		if m.CallID != "" {
			b.WriteString(" " + m.CallID)
		}
		if m.Failed {
			b.WriteString(" failed")
		}
		b.WriteString(": ")
		for _, p := range m.Parts {
			if p.Image != nil {
				b.WriteString("<" + p.Image.MediaType + ">")
			}
			b.WriteString(p.Text)
		}
		for _, c := range m.Calls {
			b.WriteString(" " + c.ID + "=" + c.Name + c.Arguments)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func call(id, name, arguments string) llm.ToolCall {
	return llm.ToolCall{ID: id, Name: name, Arguments: arguments}
}

func answerTo(id, text string) cube.Content {
	c := cube.Text(text)
	c.ToolCallID = &id
	return c
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
}

// TestConversation: what the model is shown, from the first observation to the stop.
func TestConversation(t *testing.T) {
	t.Parallel()
	g := newGame(t, &llmtest.Script{Answers: []llmtest.Answer{
		llmtest.Call(call("a", "look", `{"at": "x"}`), call("b", "look", `{"at": "y"}`)),
		llmtest.Call(call("c", "final_step", "")),
	}}, "system_prompt", "Play.", "max_output_tokens", 77)
	actions := g.act(cube.Text("Find it."), cube.Structure(cube.Pairs("k", 1)))
	if len(actions) != 2 || actions[0].Name != "look" || *actions[1].ID != "b" || value.Repr(actions[1].Arguments) != "{'at': 'y'}" {
		t.Fatalf("actions %v", actions)
	}
	if got, want := g.asked(0), "system: Play.\nuser: Find it.{\"k\": 1}\n"; got != want {
		t.Errorf("first call:\n%s\nwant\n%s", got, want)
	}
	first := g.script.Requests()[0]
	if first.MaxOutput != 77 || len(first.Tools) != 2 || first.Tools[0].Name != "look" || first.Tools[0].Parameters == nil || first.Tools[1].Parameters != nil {
		t.Errorf("request %+v", first)
	}
	actions = g.act(answerTo("b", "second"), answerTo("a", "first"), answerTo("b", "more"))
	if len(actions) != 1 || actions[0].Name != cube.StopName {
		t.Fatalf("actions %v", actions)
	}
	want := "system: Play.\nuser: Find it.{\"k\": 1}\nassistant:  a=look{\"at\": \"x\"} b=look{\"at\": \"y\"}\n" +
		"tool a: first\ntool b: second\n\nmore\n"
	if got := g.asked(1); got != want {
		t.Errorf("second call:\n%s\nwant\n%s", got, want)
	}
	r, made := g.report()
	if *r.InputTokens != 20 || *r.OutputTokens != 10 || *r.CacheTokens != 0 || r.CostUSD != nil {
		t.Errorf("result %+v", r)
	}
	contains(t, value.Repr(r.Metadata), "'n_model_calls': 2", "'api_request_times_msec': [", "'end': 'stop'")
	if n := len(made.Steps); n != 4 || made.Agent.Name != "tools" || len(made.Agent.ToolDefinitions) != 2 {
		t.Fatalf("%d steps, agent %+v", n, made.Agent)
	}
	s := made.Steps[2]
	if s.Source != atif.Agent || len(s.ToolCalls) != 2 || len(s.Observation.Results) != 2 || *s.Observation.Results[1].SourceCallID != "b" ||
		s.Observation.Results[1].Content.Text != "second\n\nmore" || s.Metrics == nil || s.Timestamp == nil {
		t.Errorf("step %+v", s)
	}
}

// TestRefused: what cannot be done is answered without a step, every call once, and
// in a form that providers take back.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		calls []llm.ToolCall
		done  int      // actions of the turn
		want  []string // parts of the second call
	}{
		{"no JSON", []llm.ToolCall{call("a", "look", `{"at": `)}, 0, []string{"assistant:  a=look{}\ntool a failed: The arguments must be a JSON object, but they are no JSON. They begin with: {\"at\": \n"}},
		{"no object", []llm.ToolCall{call("a", "look", `["x"]`)}, 0, []string{"a=look{}\ntool a failed: The arguments must be a JSON object, but they are of type list"}},
		{"not a number", []llm.ToolCall{call("a", "look", `{"at": NaN}`)}, 0, []string{"tool a failed: The arguments must be a JSON object"}},
		{"unknown tool", []llm.ToolCall{call("a", "se e", `{}`)}, 0, []string{"a=se_e{}\n", `tool a failed: There is no tool "se e". The tools are: look, final_step.`}},
		{"missing", []llm.ToolCall{call("a", "look", `{"long": true}`)}, 0, []string{`tool a failed: The argument "at" is missing.`}},
		{"misspelt", []llm.ToolCall{call("a", "look", `{"at": "x", "loong": true}`)}, 0, []string{`tool a failed: There is no argument "loong".`}},
		{"no id", []llm.ToolCall{call("", "look", ``)}, 0, []string{"call_1=look\ntool call_1 failed: The argument"}},
		{"one of three", []llm.ToolCall{call("a", "look", `{"at": "x"}`), call("b", "see", `{}`), call("c", "look", `{"at": "x"}`)}, 1,
			[]string{"tool a: seen\ntool b failed: There is no tool", "tool c failed: Not done, because a call before it in the same answer was not possible.\n"}},
		{"the same id", []llm.ToolCall{call("a", "look", `{"at": "x"}`), call("a", "look", `{"at": "y"}`)}, 2, []string{"a=look{\"at\": \"x\"} call_1=look", "tool a: seen\ntool call_1: (no result)\n"}},
		{"after the end", []llm.ToolCall{call("a", "final_step", `{}`), call("b", "look", `{"at": "y"}`)}, 1, []string{"tool b failed: Not done, because the task was ended before it.\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newGame(t, &llmtest.Script{Answers: []llmtest.Answer{llmtest.Call(c.calls...), llmtest.Call(call("z", "look", `{"at": "z"}`))}})
			actions := g.act(cube.Text("Go."))
			if c.done > 0 {
				if len(actions) != c.done {
					t.Fatalf("%d actions, want %d", len(actions), c.done)
				}
				actions = g.act(answerTo("a", "seen"))
			}
			if len(actions) != 1 || *actions[0].ID != "z" {
				t.Errorf("actions %v", actions)
			}
			contains(t, g.asked(1), c.want...)
			checkPairs(t, g.script.Requests()[1].Messages)
			g.report()
		})
	}
}

// checkPairs: every call has one result, right behind it.
func checkPairs(t testing.TB, messages []llm.Message) {
	t.Helper()
	var open []string
	for _, m := range messages {
		if m.Role == llm.Tool {
			if len(open) == 0 || open[0] != m.CallID {
				t.Fatalf("a result for %q, open calls %q, in\n%s", m.CallID, open, transcript(messages))
			}
			open = open[1:]
			continue
		}
		if len(open) > 0 {
			t.Fatalf("calls %q have no result, in\n%s", open, transcript(messages))
		}
		for _, c := range m.Calls {
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		t.Fatalf("calls %q have no result, in\n%s", open, transcript(messages))
	}
}

// TestNoCalls: an answer without a call is answered once; the second ends the episode.
func TestNoCalls(t *testing.T) {
	t.Parallel()
	say := llmtest.Say("I think it is done.")
	for _, c := range []struct {
		name    string
		answers []llmtest.Answer
		calls   int
		actions int
	}{
		{"twice", []llmtest.Answer{say, say}, 2, 0},
		{"once", []llmtest.Answer{say, llmtest.Call(call("a", "look", `{"at": "x"}`))}, 2, 1},
		{"nothing at all", []llmtest.Answer{llmtest.Say(""), llmtest.Say(" ")}, 2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newGame(t, &llmtest.Script{Answers: c.answers})
			if actions := g.act(cube.Text("Go.")); len(actions) != c.actions {
				t.Fatalf("actions %v", actions)
			}
			if n := len(g.script.Requests()); n != c.calls {
				t.Errorf("%d calls, want %d", n, c.calls)
			}
			contains(t, g.asked(1), "user: Your answer has no tool call", "call final_step.")
			for _, m := range g.script.Requests()[1].Messages {
				if m.Text() == "" && len(m.Calls) == 0 {
					t.Errorf("a message without anything: %+v", m)
				}
			}
			if r, _ := g.report(); c.actions == 0 {
				contains(t, value.Repr(r.Metadata), "'end': 'no_calls'")
			}
		})
	}
}

// TestCut: the model is told that its answer was too long.
func TestCut(t *testing.T) {
	t.Parallel()
	cut := func(a llmtest.Answer) llmtest.Answer {
		a.Response.Finish = llm.Length
		return a
	}
	g := newGame(t, &llmtest.Script{Answers: []llmtest.Answer{
		cut(llmtest.Say("Well, ")), cut(llmtest.Call(call("a", "look", `{"at": "xx`))), llmtest.Call(call("b", "look", `{"at": "x"}`)),
	}})
	g.act(cube.Text("Go."))
	contains(t, g.asked(1), "user: Your answer was cut off at the limit of its length before there was a tool call")
	contains(t, g.asked(2), "tool a failed: ", "The answer was cut off at the limit of its length: make it shorter")
}

// TestManyCalls: one answer may only do so much, and every call gets its result.
func TestManyCalls(t *testing.T) {
	t.Parallel()
	many := llmtest.Call(slices.Repeat([]llm.ToolCall{call("", "look", `{"at": "x"}`)}, 70)...)
	many.Response.Message.Parts = []llm.Part{{Text: "\n"}, {Text: "now"}}
	g := newGame(t, &llmtest.Script{Answers: []llmtest.Answer{many, llmtest.Call(call("", "final_step", ""))}})
	if n := len(g.act(cube.Text("Go."))); n != 64 {
		t.Errorf("%d actions", n)
	}
	g.act(answerTo("call_1", strings.Repeat("long ", 1<<20)))
	messages := g.script.Requests()[1].Messages
	checkPairs(t, messages)
	if n := len(messages); n != 73 || len(messages[2].Parts) != 1 {
		t.Errorf("%d messages, the answer is %+v", n, messages[2].Parts)
	}
	if n := len(messages[3].Text()); n < 200_000 || n > 300_000 {
		t.Errorf("the first result has %d bytes", n)
	}
	contains(t, messages[72].Text(), "one answer may have no more than 64 calls")
}

// TestErrors: errors of the model are the episode's, under their names.
func TestErrors(t *testing.T) {
	t.Parallel()
	fails := func(k llm.Kind) llmtest.Answer { return llmtest.Answer{Err: &llm.Error{Kind: k, Model: "m"}} }
	filtered := llmtest.Say("")
	filtered.Response.Finish = llm.Filtered
	nonsense := slices.Repeat([]llmtest.Answer{llmtest.Call(call("", "nonsense", "{"))}, 8)
	for _, c := range []struct {
		name    string
		answers []llmtest.Answer
		want    string
	}{
		{"no key", []llmtest.Answer{fails(llm.Auth)}, "AuthenticationError"},
		{"no connection", []llmtest.Answer{fails(llm.Transient)}, "APIConnectionError"},
		{"filtered", []llmtest.Answer{filtered}, "ContentPolicyViolationError"},
		{"one message that is too long", []llmtest.Answer{fails(llm.ContextLength)}, "ContextLengthExceededError"},
		{"only calls that cannot be done", nonsense, "InvalidToolCallsError"},
		{"no answer", []llmtest.Answer{{}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newGame(t, &llmtest.Script{Answers: c.answers})
			actions, err := g.agent.Act(t.Context(), cube.Observe(cube.Text("Go.")), offered())
			if err == nil || actions != nil || exception.TypeOf(err) != c.want {
				t.Errorf("actions %v, error %v of type %q, want %q", actions, err, exception.TypeOf(err), c.want)
			}
			if n := len(g.script.Requests()); n != len(c.answers) {
				t.Errorf("%d calls, want %d", n, len(c.answers))
			}
			g.report()
		})
	}
}

// TestOverflow: a call that is too long is made again with less, twice.
func TestBudget(t *testing.T) {
	t.Parallel()
	look := llmtest.Call(call("", "look", `{"at": "x"}`)) // 15 tokens
	g := newGame(t, &llmtest.Script{Answers: []llmtest.Answer{look, look, look}}, "max_tokens", 30)
	if len(g.act(cube.Text("Go."))) != 1 || len(g.act()) != 1 {
		t.Fatal("it stopped too early")
	}
	if actions := g.act(); len(actions) != 0 {
		t.Errorf("actions %v with all tokens used up", actions)
	}
	r, _ := g.report()
	contains(t, value.Repr(r.Metadata), "'end': 'max_tokens'", "'n_model_calls': 2")
}

// TestBudgetUncounted: where the provider does not count, an estimate is used up.
func TestBudgetUncounted(t *testing.T) {
	t.Parallel()
	look := llmtest.Call(call("", "look", `{"at": "x"}`))
	look.Response.Usage = nil
	g := newGame(t, &llmtest.Script{Answers: []llmtest.Answer{look, look, look}}, "max_tokens", 5000)
	if len(g.act(cube.Text(strings.Repeat("task ", 3000)))) != 1 || len(g.act()) != 1 || len(g.act()) != 0 {
		t.Errorf("%d calls, want 2", len(g.script.Requests()))
	}
	if r, _ := g.report(); r.InputTokens != nil || r.OutputTokens != nil {
		t.Errorf("an estimate is reported: %+v", r)
	}
}

// TestCost: costs are the sum where all are known, and not known otherwise.
func TestCost(t *testing.T) {
	t.Parallel()
	priced := func(cost *float64) llmtest.Answer {
		a := llmtest.Call(call("", "look", `{"at": "x"}`))
		a.Response.Cost = cost
		a.Response.Usage = &llm.Usage{Prompt: 100, Cached: 40, Completion: 7}
		return a
	}
	for _, c := range []struct {
		name  string
		costs []*float64
		want  *float64
	}{
		{"known", []*float64{new(0.25), new(0.5)}, new(0.75)},
		{"one is not known", []*float64{new(0.25), nil}, nil},
		{"one cannot be", []*float64{new(0.25), new(-1.0)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newGame(t, &llmtest.Script{Answers: []llmtest.Answer{priced(c.costs[0]), priced(c.costs[1])}})
			g.act(cube.Text("Go."))
			g.act()
			r, made := g.report()
			if (r.CostUSD == nil) != (c.want == nil) || c.want != nil && *r.CostUSD != *c.want {
				t.Errorf("cost %v, want %v", r.CostUSD, c.want)
			}
			if *r.InputTokens != 200 || *r.CacheTokens != 80 || *r.OutputTokens != 14 {
				t.Errorf("tokens %d, %d, %d", *r.InputTokens, *r.CacheTokens, *r.OutputTokens)
			}
			if m := made.Steps[2].Metrics; *m.CostUSD != 0.25 || value.Repr(*m.CachedTokens) != "40" {
				t.Errorf("metrics %+v", m)
			}
		})
	}
}

// TestImages: images are shown in a message of their own, the newest ones only, and
// are files beside the trajectory.
func TestImages(t *testing.T) {
	t.Parallel()
	script := &llmtest.Script{}
	for range 4 {
		script.Answers = append(script.Answers, llmtest.Call(call("", "look", `{"at": "x"}`)))
	}
	g := newGame(t, script, "keep_images", 2)
	picture := func(id string) cube.Content {
		c := &cube.ImageContent{Data: cube.NewImage(image.NewGray(image.Rect(0, 0, 2, 2)))}
		c.Name = new("Screen")
		if id != "" {
			c.ToolCallID = &id
		}
		return c
	}
	actions := g.act(cube.Text("Look."), picture(""))
	contains(t, g.asked(0), "user: Look.## Screen<image/png>\n")
	for range 3 {
		actions = g.act(picture(*actions[0].ID))
	}
	got := g.asked(3)
	contains(t, got, "Look.## Screen<image/png>", "tool call_1: [the image is below]\nuser: ## Screen[an earlier image is left out here]\n", "tool call_3: [the image is below]\nuser: ## Screen<image/png>\n")
	if n := strings.Count(got, "<image/png>"); n != 3 {
		t.Errorf("%d images in\n%s", n, got)
	}
	_, made := g.report()
	files, err := filepath.Glob(filepath.Join(g.dir, "image-*.png"))
	if err != nil || len(files) != 4 {
		t.Errorf("images %q, %v", files, err)
	}
	if o := made.Steps[2].Observation; len(o.Results) != 2 || o.Results[1].SourceCallID != nil || o.Results[1].Content.Parts[1].Source.Path != "image-0002.png" {
		t.Errorf("observation %+v", o)
	}
}

// TestLoose: contents that name no call go to the one that has no result, else to a
// message of their own.
func TestLoose(t *testing.T) {
	t.Parallel()
	two := []llm.ToolCall{call("a", "look", `{"at": "x"}`), call("b", "look", `{"at": "y"}`)}
	for _, c := range []struct {
		name     string
		contents []cube.Content
		want     string
	}{
		{"all named", []cube.Content{answerTo("a", "1"), answerTo("b", "2"), cube.Text("and")}, "tool a: 1\ntool b: 2\nuser: and\n"},
		{"one named", []cube.Content{answerTo("a", "1"), cube.Text("and"), cube.Text("more")}, "tool a: 1\ntool b: and\n\nmore\n"},
		{"none", nil, "tool a: (no result)\ntool b: (no result)\n"},
		{"of another call", []cube.Content{answerTo("q", "1")}, "tool a: (no result)\ntool b: 1\n"},
		{"sound", []cube.Content{&cube.AudioContent{}}, "tool b: [content of type cube.core.AudioContent, which cannot be shown]\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newGame(t, &llmtest.Script{Answers: []llmtest.Answer{llmtest.Call(two...), llmtest.Call(call("c", "final_step", ""))}})
			g.act(cube.Text("Go."))
			g.act(c.contents...)
			contains(t, g.asked(1), c.want)
			checkPairs(t, g.script.Requests()[1].Messages)
		})
	}
}

// TestCacheMarks: providers that need marks get them on what stays and on what is new.
func TestCacheMarks(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]int{"anthropic/claude-x": {0, 1, 4, 5}, "openai/gpt-x": nil} {
		script := &llmtest.Script{About: llm.Info{Name: name}, Answers: slices.Repeat([]llmtest.Answer{llmtest.Call(call("", "look", `{"at": "x"}`))}, 3)}
		g := newGame(t, script)
		g.act(cube.Text("Go."))
		g.act()
		g.act()
		var marked []int
		for i, m := range script.Requests()[2].Messages {
			if m.Cache {
				marked = append(marked, i)
			}
		}
		if !slices.Equal(marked, want) {
			t.Errorf("%s: messages %v are marked, want %v", name, marked, want)
		}
	}
}

// TestNative: a message that was changed has nothing of its provider's form.
func TestNative(t *testing.T) {
	t.Parallel()
	for id, kept := range map[string]bool{"a": true, "": false} {
		a := llmtest.Call(call(id, "look", `{"at": "x"}`))
		a.Response.Message.Native = &llm.Native{API: llm.Anthropic, Content: []byte("[]")}
		g := newGame(t, &llmtest.Script{Answers: []llmtest.Answer{a, a}})
		g.act(cube.Text("Go."))
		g.act()
		if got := g.script.Requests()[1].Messages[2].Native != nil; got != kept {
			t.Errorf("id %q: native is kept: %v, want %v", id, got, kept)
		}
	}
}

// TestTrajectoryBounds: the trajectory stays within its limit and valid, and has no
// secret; the directory is one that others write to.
func TestTrajectoryBounds(t *testing.T) {
	t.Parallel()
	script := &llmtest.Script{Answers: slices.Repeat([]llmtest.Answer{llmtest.Call(call("", "look", `{"at": "x"}`))}, 60)}
	c := config(t, script)
	c.OutputLimit = 20_000
	c.Redact = func(w io.Writer) io.WriteCloser { return veil{w} }
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.Symlink(outside, filepath.Join(c.LogDir, "trajectory.json")); err != nil {
		t.Fatal(err)
	}
	a, err := tools.Entry().Stepped(c)
	if err != nil {
		t.Fatal(err)
	}
	g := &game{t, a, script, c.LogDir}
	for range 60 {
		g.act(cube.Text(strings.Repeat("hunter22 ", 100)))
	}
	_, made := g.report()
	if made.Notes == nil || len(made.Steps) < 3 {
		t.Errorf("%d steps, notes %v", len(made.Steps), made.Notes)
	}
	data, err := os.ReadFile(filepath.Join(c.LogDir, "trajectory.json"))
	if err != nil || len(data) > 40_000 || bytes.Contains(data, []byte("hunter22")) {
		t.Errorf("the file has %d bytes, %v", len(data), err)
	}
	if _, err := os.Stat(outside); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a link was followed: %v", err)
	}
}

// veil replaces one secret in what is written at once.
type veil struct{ to io.Writer }

func (v veil) Write(p []byte) (int, error) {
	_, err := v.to.Write(bytes.ReplaceAll(p, []byte("hunter22"), []byte("[SECRET]")))
	return len(p), err
}

func (veil) Close() error { return nil }

// TestKilled: the trajectory is there also when nobody asks for a report.
func TestKilled(t *testing.T) {
	t.Parallel()
	g := newGame(t, &llmtest.Script{Answers: slices.Repeat([]llmtest.Answer{llmtest.Call(call("", "look", `{"at": "x"}`))}, 9)})
	for range 9 {
		g.act(cube.Text("seen"))
	}
	data, err := os.ReadFile(filepath.Join(g.dir, "trajectory.json"))
	if err != nil {
		t.Fatal(err)
	}
	made, err := atif.Parse(data)
	if err != nil || len(made.Steps) < 5 {
		t.Errorf("%v: %s", err, data)
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	g := newGame(t, &llmtest.Script{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.agent.Act(ctx, cube.Observe(cube.Text("Go.")), offered()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
