package logs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/value"
)

// step is what the tests look at.
type step struct {
	Source                   atif.Source
	Said, Thought            string
	Call, Result             string
	Input, Cached, Completed string
}

func stepsOf(t *testing.T, c *Converted) []step {
	t.Helper()
	if c.Trajectory == nil {
		t.Fatalf("there is no trajectory: %+v", c)
	}
	var out []step
	for _, s := range c.Trajectory.Steps {
		o := step{Source: s.Source, Said: s.Message.Text}
		if s.ReasoningContent != nil {
			o.Thought = *s.ReasoningContent
		}
		for _, call := range s.ToolCalls {
			o.Call += call.FunctionName + " " + line(call.Arguments) + ";"
		}
		if s.Observation != nil {
			for _, r := range s.Observation.Results {
				o.Result += r.Content.Text
				if r.Extra != nil {
					o.Result += line(r.Extra)
				}
				o.Result += ";"
			}
		}
		if m := s.Metrics; m != nil {
			o.Input, o.Cached, o.Completed = m.PromptTokens.String(), m.CachedTokens.String(), m.CompletionTokens.String()
		}
		out = append(out, o)
	}
	return out
}

// read converts one file.
func read(t *testing.T, agent, file, text string) *Converted {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, filepath.FromSlash(file)), text)
	got, err := convert(agent, Input{Dir: dir, Model: "p/m"})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// withoutSession is a copy of a recorded run's logs, of which only what was printed is
// left.
func withoutSession(t *testing.T, agent, scenario string) string {
	t.Helper()
	dir := t.TempDir()
	err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata/vectors/agent-logs-real", agent, scenario)))
	if err := errors.Join(err, os.RemoveAll(filepath.Join(dir, "sessions"))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return dir
}

// TestPrintedAlone has runs whose sessions were lost: what was printed says the same,
// as far as it says it.
func TestPrintedAlone(t *testing.T) {
	t.Parallel()
	const final = "Created hello.txt with the line Hello, world!"
	for agent, want := range map[string][]step{
		"cline-cli": {
			{Source: atif.User, Said: "do it"},
			{Source: atif.Agent, Call: `run_commands {"commands": ["printf 'Hello, world!\\n' > hello.txt"]};`, Result: ";", Input: "1000", Cached: "200", Completed: "50"},
			{Source: atif.Agent, Said: final, Input: "1100", Cached: "800", Completed: "20"},
		},
		"qwen-coder": {
			{Source: atif.User, Said: "do it"},
			{
				Source: atif.Agent, Call: `run_shell_command {"command": "printf 'Hello, world!\\n' > hello.txt"};`, Input: "1000", Cached: "200", Completed: "50",
				Result: "Command: printf 'Hello, world!\\n' > hello.txt\nDirectory: (root)\nOutput: (empty)\nError: (none)\nExit Code: 0\nSignal: (none)\nProcess Group PGID: (none);",
			},
			{Source: atif.Agent, Said: final, Input: "1100", Cached: "800", Completed: "20"},
		},
		"copilot-cli": {
			{Source: atif.User, Said: "Create the file `hello.txt` in the working directory. It must hold exactly one line:\n\n    Hello, world!\n"},
			{
				Source: atif.Agent, Call: `bash {"command": "printf 'Hello, world!\\n' > hello.txt", "description": "Create hello.txt"};`,
				Result: "\n<shellId: 0 completed with exit code 0>;",
			},
			{Source: atif.Agent, Said: final},
		},
		"continue": {{Source: atif.User, Said: "do it"}, {Source: atif.Agent, Said: final}},
	} {
		got, err := convert(agent, Input{Dir: withoutSession(t, agent, "ok"), Instruction: "do it"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, stepsOf(t, got)); diff != "" || got.Failure != "" {
			t.Errorf("%s: failure %q, steps (-want +got):\n%s", agent, got.Failure, diff)
		}
		refused, err := convert(agent, Input{Dir: withoutSession(t, agent, "auth")})
		if err != nil || FailureType(refused.Failure) != "AuthenticationError" {
			t.Errorf("%s: %v, %+v", agent, err, refused)
		}
		if refused.Trajectory != nil && agent != "copilot-cli" {
			t.Errorf("%s: what no model said is a step: %+v", agent, stepsOf(t, refused))
		}
	}
}

func TestQwenCoder(t *testing.T) {
	t.Parallel()
	got := read(t, "qwen-coder", "qwen-sessions/x/chats/s.jsonl", `{"type":"user","message":{"parts":[{"text":"a"},{"text":"b"}]}}
{"type":"system","systemPayload":{"uiEvent":{"event.name":"qwen-code.api_error","error_message":"try again","status_code":503}}}
{"type":"assistant","model":"m","message":{"parts":[{"text":"hm","thought":true},{"text":"so"},{"functionCall":{"id":"c","name":"n","args":{"x":1}}}]},"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":2,"totalTokenCount":17,"cachedContentTokenCount":4}}
{"type":"tool_result","message":{"parts":[{"functionResponse":{"id":"c","response":{"error":"no"}}},{"functionResponse":{"id":"c","response":{"output":"again"}}},{"functionResponse":{"id":"unknown","response":{"output":1}}}]}}
{"type":"assistant","message":{"parts":[{"text":"end"}]},"usageMetadata":{"promptTokenCount":20,"candidatesTokenCount":5,"thoughtsTokenCount":2,"totalTokenCount":25}}
{"type":"system","systemPayload":{"uiEvent":{"event.name":"qwen-code.api_error","error_message":"x","status_code":429}}}`)
	want := []step{
		{Source: atif.User, Said: "a\nb"},
		{Source: atif.Agent, Said: "so", Thought: "hm", Call: `n {"x": 1};`, Result: `no{"is_error": true};`, Input: "10", Cached: "4", Completed: "7"},
		{Source: atif.Agent, Said: "end", Input: "20", Cached: "0", Completed: "5"}, // which has what was thought
	}
	if diff := cmp.Diff(want, stepsOf(t, got)); diff != "" || got.Failure != "x (HTTP 429)" {
		t.Errorf("failure %q (-want +got):\n%s", got.Failure, diff)
	}
}

func TestClineCLI(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sessions/1/1.messages.json"), `{"agent":"helper","messages":[{"role":"user","content":"no"}]}`)
	write(t, filepath.Join(dir, "sessions/2/2.json"), `{"metadata":{"sessionHistoryOrigin":{"version":"3"}},"model":"m"}`)
	write(t, filepath.Join(dir, "sessions/2/2.messages.json"), `{"agent":"lead","messages":[
		{"role":"user","content":"<user_input mode=\"act\">a > b</user_input>\n"},
		{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"c","name":"n","input":{}},{"type":"tool_use","id":"d","name":"n","input":"x"}],"metrics":{"inputTokens":10,"outputTokens":5,"cost":0.5}},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"result":"r","success":true},{"result":"","error":"e","success":false},{"type":"text","text":"t"},"s",{"x":1}]},{"type":"tool_result","tool_use_id":"d","content":"plain"}]},
		{"role":"assistant","content":[{"type":"text","text":"429"}],"metadata":{"displayRole":"error"}}]}`)
	got, err := convert("cline-cli", Input{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	want := []step{
		{Source: atif.User, Said: "a > b"},
		{Source: atif.Agent, Thought: "hm", Call: `n {};n {"input": "x"};`, Result: "r\ne\nt\ns\n{\"x\": 1}{\"is_error\": true};plain;", Input: "10", Cached: "0", Completed: "5"},
	}
	if diff := cmp.Diff(want, stepsOf(t, got)); diff != "" || got.Failure != "429" {
		t.Errorf("failure %q (-want +got):\n%s", got.Failure, diff)
	}
	if a := got.Trajectory.Agent; a.Version != "3" || *a.ModelName != "m" || *got.CostUSD != 0.5 {
		t.Errorf("got %+v, cost %v", a, *got.CostUSD)
	}
}

// TestClineCLIPrinted has an answer that fails after one that came.
func TestClineCLIPrinted(t *testing.T) {
	t.Parallel()
	got := read(t, "cline-cli", "cline.txt", `{"type":"agent_event","event":{"type":"usage","inputTokens":9,"outputTokens":9}}
{"type":"agent_event","event":{"type":"iteration_start"}}
{"type":"agent_event","event":{"type":"content_end","contentType":"reasoning","reasoning":"hm"}}
{"type":"agent_event","event":{"type":"content_end","contentType":"text","text":"a"}}
{"type":"agent_event","event":{"type":"content_end","contentType":"text","text":"b"}}
{"type":"agent_event","event":{"type":"content_start","contentType":"tool","toolName":"n","toolCallId":"c","input":{}}}
{"type":"agent_event","event":{"type":"content_end","contentType":"tool","toolCallId":"c","error":"broke"}}
{"type":"agent_event","event":{"type":"usage","inputTokens":10,"outputTokens":5,"cacheReadTokens":2}}
{"type":"agent_event","event":{"type":"iteration_start"}}
{"type":"agent_event","event":{"type":"error","error":{"message":"bad token"},"errorClass":"auth"}}
{"type":"run_result","finishReason":"error","text":"bad token","usage":{"totalCost":0.25}}`)
	want := []step{{Source: atif.Agent, Said: "a\nb", Thought: "hm", Call: "n {};", Result: `broke{"is_error": true};`, Input: "10", Cached: "2", Completed: "5"}}
	if diff := cmp.Diff(want, stepsOf(t, got)); diff != "" || got.Failure != "bad token (auth)" || *got.CostUSD != 0.25 {
		t.Errorf("failure %q, cost %v (-want +got):\n%s", got.Failure, got.CostUSD, diff)
	}
}

func TestCopilotCLI(t *testing.T) {
	t.Parallel()
	got := read(t, "copilot-cli", "sessions/s/events.jsonl", `{"type":"user.message","data":{"content":"a"}}
{"type":"session.usage_record","data":{"usage":{"apiCallId":"1","inputTokens":10,"outputTokens":5,"cacheReadTokens":4,"cost":7}}}
{"type":"session.error","data":{"message":"try again","statusCode":503}}
{"type":"assistant.reasoning","data":{"content":"hm"}}
{"type":"assistant.message","data":{"apiCallId":"1","content":"b","toolRequests":[{"toolCallId":"c","name":"task","arguments":"{}"}]}}
{"type":"session.usage_record","data":{"usage":{"apiCallId":"2","inputTokens":100,"outputTokens":50}}}
{"type":"assistant.message","data":{"apiCallId":"2","parentToolCallId":"c","content":"helper"}}
{"type":"tool.execution_complete","data":{"toolCallId":"c","success":false,"error":{"message":"no"}}}`)
	want := []step{{Source: atif.User, Said: "a"}, {Source: atif.Agent, Said: "b", Thought: "hm", Call: "task {};", Result: `no{"is_error": true};`, Input: "10", Cached: "4", Completed: "5"}}
	if diff := cmp.Diff(want, stepsOf(t, got)); diff != "" || got.Failure != "" || got.CostUSD != nil || got.InputTokens.String() != "110" {
		t.Errorf("%+v (-want +got):\n%s", got, diff)
	}
	got = read(t, "copilot-cli", "sessions/s/events.jsonl", `{"type":"assistant.message","data":{"content":"b"}}
{"type":"session.shutdown","data":{"modelMetrics":{"m":{"usage":{"inputTokens":3,"outputTokens":2}},"n":{"usage":{"inputTokens":4}}}}}
{"type":"model.call_failure","data":{"errorMessage":"x","statusCode":500}}
{"type":"result","exitCode":1}`)
	if got.InputTokens.String() != "7" || got.OutputTokens.String() != "2" || got.Failure != "x (HTTP 500)" {
		t.Errorf("got %+v", got)
	}
}

func TestContinue(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sessions/sessions.json"), `[]`)
	write(t, filepath.Join(dir, "sessions/a.json"), `{"other":1}`)
	write(t, filepath.Join(dir, "sessions/b.json"), `{"history":[
		{"message":{"role":"user","content":[{"type":"text","text":"a"}]}},
		{"message":{"role":"thinking","content":"hm"}},
		{"message":{"role":"assistant","content":"b","toolCalls":[{"id":"c","function":{"name":"n","arguments":"{\"x\":1}"}},{"id":"d","function":{"name":"n","arguments":"?"}},{"id":"e","function":{"name":"n"}}],"usage":{"prompt_tokens":10,"completion_tokens":5,"cost_cents":50}},
		 "toolCallStates":[{"toolCallId":"c","status":"errored","output":[{"content":"p"},{"content":"q"}]},{"toolCallId":"e","status":"generating"}]},
		{"message":{"role":"tool","toolCallId":"d","content":"r"}}]}`)
	write(t, filepath.Join(dir, "continue.txt"), "warning: x\n"+`{"status":"error","message":"429 slow down"}`)
	got, err := convert("continue", Input{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	want := []step{
		{Source: atif.User, Said: "a"},
		{
			Source: atif.Agent, Said: "b", Thought: "hm", Call: `n {"x": 1};n {"input": "?"};n {"input": null};`, Result: "p\nq{\"is_error\": true};r;",
			Input: "10", Cached: "0", Completed: "5",
		},
	}
	if diff := cmp.Diff(want, stepsOf(t, got)); diff != "" || got.Failure != "429 slow down" || *got.CostUSD != 0.5 {
		t.Errorf("failure %q, cost %v (-want +got):\n%s", got.Failure, got.CostUSD, diff)
	}
}

// TestCodexAnswers has answers of several items, in whatever order they are told: the
// first step of an answer has what it used, and what no record tells no step has.
func TestCodexAnswers(t *testing.T) {
	t.Parallel()
	item := func(payload string) string { return `{"type":"response_item","payload":` + payload + "}\n" }
	call := func(id string) string {
		return item(`{"type":"function_call","call_id":"` + id + `","name":"n","arguments":"{}"}`)
	}
	output := func(id string) string {
		return item(`{"type":"function_call_output","call_id":"` + id + `","output":"` + id + `"}`)
	}
	message := func(role, said string) string {
		return item(`{"type":"message","role":"` + role + `","content":[{"text":"` + said + `"}]}`)
	}
	used := func(n string) string {
		return `{"type":"token_usage_record","payload":{"usage":{"input_tokens":` + n + `,"output_tokens":1,"cached_input_tokens":2,"reasoning_output_tokens":3}}}` + "\n"
	}
	const counted = `{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":9},"last_token_usage":{"input_tokens":9,"output_tokens":9}}}}` + "\n"
	got := read(t, "codex", mainFiles["codex"], message("user", "u")+
		message("assistant", "a")+call("1")+call("2")+used("11")+counted+output("2")+output("1")+
		call("lost")+call("4")+used("12")+output("4")+
		call("5")+output("5")+used("13")+ // before it is told
		used("99")+ // of an answer without a step
		message("user", "v")+message("assistant", "b")+counted)
	want := []step{
		{Source: atif.User, Said: "u"},
		{Source: atif.Agent, Said: "a", Input: "11", Cached: "2", Completed: "1"},
		{Source: atif.Agent, Call: "n {};", Result: "2;"},
		{Source: atif.Agent, Call: "n {};", Result: "1;"},
		{Source: atif.Agent, Call: "n {};", Result: "4;", Input: "12", Cached: "2", Completed: "1"},
		{Source: atif.Agent, Call: "n {};", Result: "5;", Input: "13", Cached: "2", Completed: "1"},
		{Source: atif.User, Said: "v"},
		{Source: atif.Agent, Said: "b"},
	}
	if diff := cmp.Diff(want, stepsOf(t, got)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// TestVersion is the trial's where the log has none, for every agent of which the
// reference's logs have none.
func TestVersion(t *testing.T) {
	t.Parallel()
	for agent, text := range map[string]string{
		"goose": `{"type":"error","error":"x"}`, "mini-swe-agent": `{"messages":[{"role":"assistant","content":"x"}]}`,
		"openhands": `{"action":"message","source":"agent","message":"x"}`,
		"codex":     `{"type":"response_item","payload":{"type":"message","role":"assistant"}}`,
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, mainFiles[agent]+otherFiles[agent]), text)
		got, err := convert(agent, Input{Dir: dir, Version: "1.2"})
		if err != nil || got.Trajectory.Agent.Version != "1.2" {
			t.Errorf("%s: %v, %+v", agent, err, got.Trajectory)
		}
	}
}

// TestPricesOfOthers prices what a log gives no cost for.
func TestPricesOfOthers(t *testing.T) {
	t.Parallel()
	asked := ""
	got, err := convert("copilot-cli", Input{
		Dir:    "testdata/vectors/agent-logs-real/copilot-cli/ok",
		Prices: func(model string) (Price, bool) { asked = model; return Price{Input: 1, Output: 2}, true },
	})
	if err != nil || asked != "fake-model" || got.CostUSD == nil || *got.CostUSD != 2240 || got.InputTokens.Cmp(value.NewInt(2100)) != 0 {
		t.Errorf("%v, %q, %+v", err, asked, got)
	}
}
