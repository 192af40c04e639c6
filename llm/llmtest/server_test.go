package llmtest_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	claude "github.com/anthropics/anthropic-sdk-go"
	claudeoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
)

const key = "k-1"

// turn has one of everything.
func turn(*llmtest.Request) llmtest.Turn {
	return llmtest.Turn{
		Text: "Grüße", Reasoning: "Hm.", Signature: "c2ln",
		Calls: []llm.ToolCall{{ID: "c1", Name: "bash", Arguments: `{"command":"ls"}`}, {ID: "c2", Name: "bash", Arguments: `{"command":"pwd"}`}},
		Usage: &llm.Usage{Prompt: 100, Completion: 20, Cached: 30},
	}
}

func start(t *testing.T, s *llmtest.Server) string {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server.URL
}

// counted checks that one answer to one request was counted.
func counted(t *testing.T, s *llmtest.Server) {
	t.Helper()
	want := map[llmtest.Account]llmtest.Count{
		{Model: "m", Key: key}: {Requests: 1, Answers: 1, Usage: llm.Usage{Prompt: 100, Completion: 20, Cached: 30}},
	}
	if diff := cmp.Diff(want, s.Counts()); diff != "" {
		t.Error(diff)
	}
}

func TestChatStream(t *testing.T) {
	t.Parallel()
	s := &llmtest.Server{Answer: turn, Key: key}
	service := openai.NewChatCompletionService(option.WithBaseURL(start(t, s)+"/v1/"), option.WithAPIKey(key))
	stream := service.NewStreaming(t.Context(), openai.ChatCompletionNewParams{
		Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("x")},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	})
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			t.Fatalf("chunk %s does not fit", stream.Current().RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	choice := acc.Choices[0]
	if choice.Message.Content != "Grüße" || choice.FinishReason != "tool_calls" || acc.Usage.PromptTokens != 100 || acc.Usage.CompletionTokens != 20 {
		t.Errorf("%+v", acc.ChatCompletion)
	}
	if calls := choice.Message.ToolCalls; len(calls) != 2 || calls[1].ID != "c2" || calls[1].Function.Arguments != `{"command":"pwd"}` {
		t.Errorf("calls = %+v", calls)
	}
	counted(t, s)
}

func TestResponsesStream(t *testing.T) {
	t.Parallel()
	s := &llmtest.Server{Answer: turn, Key: key}
	service := responses.NewResponseService(option.WithBaseURL(start(t, s)+"/v1/"), option.WithAPIKey(key))
	stream := service.NewStreaming(t.Context(), responses.ResponseNewParams{
		Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("x")},
	})
	text, items := "", 0
	var last responses.Response
	for stream.Next() {
		switch e := stream.Current().AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			text += e.Delta
		case responses.ResponseOutputItemDoneEvent:
			items++
		case responses.ResponseCompletedEvent:
			last = e.Response
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if text != "Grüße" || items != 4 || last.OutputText() != text || last.Usage.InputTokens != 100 || len(last.Output) != 4 {
		t.Errorf("text %q, %d items, %s", text, items, last.RawJSON())
	}
	counted(t, s)
}

func TestAnthropicStream(t *testing.T) {
	t.Parallel()
	s := &llmtest.Server{Answer: turn, Key: key}
	service := claude.NewMessageService(claudeoption.WithBaseURL(start(t, s)+"/"), claudeoption.WithAPIKey(key))
	stream := service.NewStreaming(t.Context(), claude.MessageNewParams{
		Model: "m", MaxTokens: 10, Messages: []claude.MessageParam{claude.NewUserMessage(claude.NewTextBlock("x"))},
	})
	var got claude.Message
	for stream.Next() {
		if err := got.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if len(got.Content) != 4 || got.Content[0].Thinking != "Hm." || got.Content[0].Signature != "c2ln" || got.Content[1].Text != "Grüße" ||
		string(got.Content[3].Input) != `{"command":"pwd"}` || got.StopReason != "tool_use" {
		t.Errorf("%+v", got.Content)
	}
	if u := got.Usage; u.InputTokens != 70 || u.CacheReadInputTokens != 30 || u.OutputTokens != 20 {
		t.Errorf("usage = %+v", u)
	}
	counted(t, s)
}

// post makes a request and returns the answer.
func post(t *testing.T, address, body string) (status int, header http.Header, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Goog-Api-Key", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		data = append(data, "<cut>"...)
	}
	return res.StatusCode, res.Header, string(data)
}

type piece struct {
	Candidates []struct {
		Content struct {
			Parts []struct {
				Text     string
				Thought  bool
				Function struct{ Name string } `json:"functionCall"`
			}
		}
		Finish string `json:"finishReason"`
	}
	Usage *struct {
		Prompt     int `json:"promptTokenCount"`
		Candidates int `json:"candidatesTokenCount"`
	} `json:"usageMetadata"`
}

func TestGeminiStream(t *testing.T) {
	t.Parallel()
	s := &llmtest.Server{Answer: turn, Key: key}
	address := start(t, s) + "/v1beta/models/m:streamGenerateContent"
	const body = `{"contents":[{"role":"user","parts":[{"text":"x"}]}]}`
	_, header, answer := post(t, address+"?alt=sse", body)
	if got := header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("content type %s", got)
	}
	var events []piece
	for scanner := bufio.NewScanner(strings.NewReader(answer)); scanner.Scan(); {
		if data, ok := strings.CutPrefix(scanner.Text(), "data: "); ok {
			var p piece
			if err := json.Unmarshal([]byte(data), &p); err != nil {
				t.Fatal(err)
			}
			events = append(events, p)
		}
	}
	counted(t, s)
	var list []piece
	_, _, answer = post(t, address, body)
	if err := json.Unmarshal([]byte(answer), &list); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(events, list); diff != "" {
		t.Error(diff)
	}
	if len(events) != 4 || events[0].Usage == nil || events[0].Usage.Candidates != 0 || events[3].Usage == nil || events[3].Usage.Prompt != 100 || events[3].Usage.Candidates != 20 || events[3].Candidates[0].Finish != "STOP" {
		t.Fatalf("%+v", events)
	}
	if !events[0].Candidates[0].Content.Parts[0].Thought || events[1].Candidates[0].Content.Parts[0].Text != "Grüße" {
		t.Errorf("%+v", events)
	}
}

func TestCutStream(t *testing.T) {
	t.Parallel()
	s := &llmtest.Server{Answer: func(*llmtest.Request) llmtest.Turn {
		return llmtest.Turn{Text: "never whole", Fault: &llmtest.Fault{Kind: llmtest.Cut}}
	}}
	address := start(t, s)
	for path, end := range map[string]string{
		"/v1/chat/completions": "[DONE]", "/v1/responses": "response.completed", "/v1/messages": "message_stop",
	} {
		_, _, answer := post(t, address+path, `{"model":"m","stream":true,"messages":[],"input":"x"}`)
		if !strings.Contains(answer, "data: ") || strings.Contains(answer, end) || !strings.HasSuffix(answer, "<cut>") {
			t.Errorf("%s: %q", path, answer)
		}
	}
	if c := s.Counts()[llmtest.Account{Model: "m", Key: key}]; c.Requests != 3 || c.Answers != 0 {
		t.Errorf("%+v", c)
	}
}

func TestKeyAndPaths(t *testing.T) {
	t.Parallel()
	s := &llmtest.Server{Answer: turn, Key: "another"}
	address := start(t, s)
	for path, want := range map[string]int{
		"/v1/chat/completions": 401, "/v1/responses": 401, "/v1/messages": 401,
		"/v1beta/models/m:generateContent": 400, "/elsewhere": 404, "/v1beta/models/m:destroy": 404,
	} {
		if status, _, _ := post(t, address+path, `{}`); status != want {
			t.Errorf("%s: %d", path, status)
		}
	}
	if got := s.Counts(); len(got) != 0 {
		t.Errorf("counts = %v", got)
	}
	s = &llmtest.Server{Answer: turn}
	address = start(t, s)
	for path, want := range map[string]string{
		"/v1/messages/count_tokens":    `{"input_tokens":2,"totalTokens":2}`,
		"/v1beta/models/m:countTokens": `{"input_tokens":2,"totalTokens":2}`,
	} {
		_, _, answer := post(t, address+path, `{"messages":[{"role":"user","content":"12345"}],"contents":[{"parts":[{"text":"12345"}]}]}`)
		if answer != want {
			t.Errorf("%s: %s", path, answer)
		}
	}
	if status, _, _ := post(t, address+"/v1/messages", `[`); status != 400 {
		t.Errorf("a body that is no JSON: %d", status)
	}
}

func TestLookingOnly(t *testing.T) {
	t.Parallel()
	address := start(t, &llmtest.Server{Answer: turn, Key: key})
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{http.MethodHead, "/", http.StatusOK},
		{http.MethodHead, "/api/hello", http.StatusOK},
		{http.MethodGet, "/v1/models", http.StatusOK},
		{http.MethodGet, "/v1/responses", http.StatusUpgradeRequired},
		{http.MethodGet, "/v1/messages", http.StatusMethodNotAllowed},
		{http.MethodGet, "/v1beta/models/m:generateContent", http.StatusMethodNotAllowed},
		{http.MethodGet, "/elsewhere", http.StatusNotFound},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, address+c.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s %s: status %d, want %d", c.method, c.path, resp.StatusCode, c.want)
		}
	}
}

// TestResults: what came of a call is the text of a message, however a client sends it.
func TestResults(t *testing.T) {
	t.Parallel()
	s := &llmtest.Server{Answer: turn}
	address := start(t, s)
	for _, c := range []struct{ path, body string }{
		{"/v1/responses", `{"model":"m","input":[{"type":"function_call","call_id":"c","name":"bash","arguments":"{}"},
			{"type":"function_call_output","call_id":"c","output":"done"}]}`},
		{"/v1/responses", `{"model":"m","input":[{"type":"custom_tool_call","call_id":"c","name":"patch","input":"{}"},
			{"type":"custom_tool_call_output","call_id":"c","output":[{"type":"input_text","text":"done"}]}]}`},
		{"/v1beta/models/m:generateContent", `{"contents":[{"role":"model","parts":[{"functionCall":{"id":"c","name":"bash","args":{}}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"c","name":"bash","response":{"output":"done"}}}]}]}`},
		{"/v1beta/models/m:generateContent", `{"contents":[{"role":"model","parts":[{"functionCall":{"id":"c","name":"bash","args":{}}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"c","name":"bash","response":{"name":"bash","content":"done"}}}]}]}`},
	} {
		resp, err := http.Post(address+c.path, "application/json", strings.NewReader(c.body)) //nolint:noctx // a test's
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		all := s.Requests()
		req := all[len(all)-1]
		last := req.Messages[len(req.Messages)-1]
		if req.Last() != "done" || last.Role != llm.Tool || last.CallID != "c" || req.Turn != 1 {
			t.Errorf("%s: %s: read as %+v, turn %d", c.path, c.body, req.Messages, req.Turn)
		}
		if calls := req.Messages[0].Calls; len(calls) != 1 || calls[0].Arguments != "{}" {
			t.Errorf("%s: calls = %+v", c.path, calls)
		}
	}
}

func TestScriptFile(t *testing.T) {
	t.Parallel()
	script, err := llmtest.ParseScript([]byte(`{
		"rules": [
			{"last_contains": "stop", "answer": {"text": "stopped", "finish": "length"}},
			{"any_contains": "secret word", "model": "big", "answer": {"text": "found"}},
			{"turn": 2, "tool": "*submit", "answer": {"calls": [{"name": "*submit", "arguments": {}}, {"name": "no*ne", "arguments": {}}]}},
			{"turn": 1, "tool": "bash", "answer": {"calls": [{"name": "bash", "arguments": {"a": 1}}, {"name": "bash", "arguments": "broken {"}]}}
		],
		"turns": [
			{"text": "first", "reasoning": "r", "cost": 0.5, "usage": {"prompt": 9, "completion": 8, "cached": 7, "cache_write": 1},
			 "faults": [{"status": 500}, {"kind": "rate", "retry_after": "2"}]}
		],
		"otherwise": {"text": "else"}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	user := func(text string) []llm.Message { return []llm.Message{llm.TextMessage(llm.User, text)} }
	cost := 0.5
	first := llmtest.Turn{
		Text: "first", Reasoning: "r", Cost: &cost, Usage: &llm.Usage{Prompt: 9, Completion: 8, Cached: 7, CacheWrite: 1},
	}
	faulty, limited := first, first
	faulty.Fault = &llmtest.Fault{Status: 500}
	limited.Fault = &llmtest.Fault{Kind: llmtest.RateLimit, RetryAfter: "2"}
	for _, c := range []struct {
		name string
		req  llmtest.Request
		want llmtest.Turn
	}{
		{"rule", llmtest.Request{Messages: user("please stop")}, llmtest.Turn{Text: "stopped", Finish: llm.Length}},
		{"some message", llmtest.Request{Model: "bigger", Messages: append(user("the secret word"), user("x")...), Turn: 5}, llmtest.Turn{Text: "found"}},
		{"other model", llmtest.Request{Model: "small", Messages: user("the secret word"), Turn: 5}, llmtest.Turn{Text: "else"}},
		{"tool", llmtest.Request{Turn: 1, Tools: []string{"bash"}}, llmtest.Turn{Calls: []llm.ToolCall{
			{Name: "bash", Arguments: `{"a": 1}`}, {Name: "bash", Arguments: "broken {"},
		}}},
		{"tool of a server", llmtest.Request{Turn: 2, Tools: []string{"bash", "mcp__task:submit"}}, llmtest.Turn{Calls: []llm.ToolCall{
			{Name: "mcp__task:submit", Arguments: "{}"}, {Name: "no*ne", Arguments: "{}"},
		}}},
		{"no tool", llmtest.Request{Turn: 1}, llmtest.Turn{Text: "else"}},
		{"first fault", llmtest.Request{}, faulty},
		{"second fault", llmtest.Request{Attempt: 1}, limited},
		{"no more faults", llmtest.Request{Attempt: 2}, first},
	} {
		if diff := cmp.Diff(c.want, script.Answer(&c.req)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	for _, text := range []string{``, `{"turns": [{"txt": "x"}]}`, `{} {}`, `[]`, `{"turns": 7}`} {
		if _, err := llmtest.ParseScript([]byte(text)); err == nil {
			t.Errorf("%s was taken for a script", text)
		}
	}
	empty := &llmtest.ScriptFile{}
	if got := empty.Answer(&llmtest.Request{}); got.Fault == nil || got.Fault.Status != 400 {
		t.Errorf("%+v", got)
	}
}

// TestNamespaces: tools of a namespace are offered under their full names, and called apart.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	var offered []string
	s := &llmtest.Server{Key: key, Answer: func(req *llmtest.Request) llmtest.Turn {
		offered = req.Tools
		return llmtest.Turn{Calls: []llm.ToolCall{{ID: "1", Name: req.Tools[1], Arguments: "{}"}}}
	}}
	body := `{"model":"m","input":"x","tools":[{"type":"function","name":"shell"},{"type":"namespace","name":"mcp__task","tools":[{"type":"function","name":"submit"}]}]}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, start(t, s)+"/v1/responses", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct {
		Output []struct{ Type, Namespace, Name string }
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if want := []string{"shell", "mcp__task:submit"}; !slices.Equal(offered, want) {
		t.Errorf("offered %q, want %q", offered, want)
	}
	if len(answer.Output) != 1 || answer.Output[0].Namespace != "mcp__task" || answer.Output[0].Name != "submit" {
		t.Errorf("the answer is %+v", answer)
	}
}

// Attempts of one request are counted apart from those of others, and not kept if asked.
func TestAttempts(t *testing.T) {
	t.Parallel()
	var attempts []int
	s := &llmtest.Server{Forget: true, Answer: func(r *llmtest.Request) llmtest.Turn {
		attempts = append(attempts, r.Attempt)
		return llmtest.Turn{Text: "x"}
	}}
	address := start(t, s)
	for _, text := range []string{"a", "a", "b", "a"} {
		post(t, address+"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"`+text+`"}]}`)
	}
	if diff := cmp.Diff([]int{0, 1, 0, 2}, attempts); diff != "" {
		t.Error(diff)
	}
	if got := s.Requests(); len(got) != 0 {
		t.Errorf("%d requests are kept", len(got))
	}
}

// Whatever comes, the server answers, and does not panic.
func FuzzServer(f *testing.F) {
	f.Add("/v1/chat/completions", `{"messages":[{"role":"tool","content":[{"text":"x"}],"tool_calls":[{}]}],"stream":true}`)
	f.Add("/v1/responses", `{"input":[{"type":"function_call"},{"type":"function_call_output","output":[{"text":"x"}]}]}`)
	f.Add("/v1/messages", `{"system":[{"text":"s"}],"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"text":"x"}]}]}]}`)
	f.Add("/v1beta/models/:generateContent", `{"contents":[{"parts":[{"functionResponse":{"response":{"output":7}}},{"functionCall":{}}]}]}`)
	f.Fuzz(func(t *testing.T, path, body string) {
		req := &http.Request{Method: http.MethodPost, URL: &url.URL{Path: path}, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
		w := httptest.NewRecorder()
		(&llmtest.Server{Answer: turn}).ServeHTTP(w, req)
		if w.Body.Len() == 0 {
			t.Errorf("no answer, status %d", w.Code)
		}
	})
}
