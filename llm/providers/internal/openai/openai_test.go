package openai_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/llm/providers/internal/openai"
	"github.com/proctor-run/proctor/value"
)

// complete makes one call at a server with a handler.
func complete(t *testing.T, h http.Handler, e llm.Endpoint, req *llm.Request) (*llm.Response, error) {
	t.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	e.Base = s.URL + "/v1"
	m, err := openai.New(e)
	if err != nil {
		t.Fatal(err)
	}
	return m.Complete(t.Context(), req)
}

// says answers with a body.
func says(body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
}

type vectorMessage struct {
	Role    llm.Role        `json:"role"`
	Content json.RawMessage `json:"content"`
}

func (v vectorMessage) message(t *testing.T) llm.Message {
	t.Helper()
	var text string
	if json.Unmarshal(v.Content, &text) == nil {
		return llm.TextMessage(v.Role, text)
	}
	var parts []struct {
		Text  string `json:"text"`
		Image *struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if err := json.Unmarshal(v.Content, &parts); err != nil {
		t.Fatal(err)
	}
	m := llm.Message{Role: v.Role}
	for _, p := range parts {
		if p.Image != nil {
			m.Parts = append(m.Parts, llm.Part{Image: &llm.Image{URL: p.Image.URL}})
		} else {
			m.Parts = append(m.Parts, llm.Part{Text: p.Text})
		}
	}
	return m
}

func TestCacheVectors(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Model    string          `json:"model"`
		Messages []vectorMessage `json:"messages"`
		Out      any             `json:"out"`
	}
	if err := json.Unmarshal(vectors.File(t, "llm/anthropic-cache.json"), &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("there is no case")
	}
	for _, c := range cases {
		var messages []llm.Message
		for _, m := range c.Messages {
			messages = append(messages, m.message(t))
		}
		s := &llmtest.Server{Answer: func(*llmtest.Request) llmtest.Turn { return llmtest.Turn{Text: "ok"} }}
		_, sent, _ := strings.Cut(c.Model, "/")
		req := &llm.Request{Messages: llm.MarkLast(c.Model, messages, 3)}
		if _, err := complete(t, s, llm.Endpoint{Name: c.Model, Model: sent, API: llm.Chat}, req); err != nil {
			t.Fatal(err)
		}
		var body struct {
			Messages any `json:"messages"`
		}
		if err := json.Unmarshal(s.Requests()[0].Body, &body); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.Out, body.Messages); diff != "" {
			t.Errorf("%s: %s", c.Model, diff)
		}
	}
}

// Of more marks than a provider takes, the last ones count.
func TestFourMarks(t *testing.T) {
	t.Parallel()
	two := llm.Message{Role: llm.User, Parts: []llm.Part{{Text: "first"}, {Text: "second"}}, Cache: true}
	s := &llmtest.Server{Answer: func(*llmtest.Request) llmtest.Turn { return llmtest.Turn{Text: "ok"} }}
	req := &llm.Request{Messages: []llm.Message{two, two, {Role: llm.User, Parts: []llm.Part{{Text: "third"}}, Cache: true}}}
	if _, err := complete(t, s, llm.Endpoint{Name: "claude", Model: "m", API: llm.Chat}, req); err != nil {
		t.Fatal(err)
	}
	want := `[{"role":"user","content":[{"type":"text","text":"first"},{"type":"text","text":"second","cache_control":{"type":"ephemeral"}}]},` +
		`{"role":"user","content":[{"type":"text","text":"first","cache_control":{"type":"ephemeral"}},{"type":"text","text":"second","cache_control":{"type":"ephemeral"}}]},` +
		`{"role":"user","content":[{"type":"text","text":"third","cache_control":{"type":"ephemeral"}}]}]`
	if body := s.Requests()[0].Body; !bytes.Contains(body, []byte(want)) {
		t.Errorf("body = %s", body)
	}
}

func TestThinkingOfClaude(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
	}{
		{"openrouter/anthropic/claude-x", `"thinking":{"budget_tokens":1024,"type":"enabled"}`},
		{"openai/gpt-x", ""},
	} {
		s := &llmtest.Server{Answer: func(*llmtest.Request) llmtest.Turn { return llmtest.Turn{Text: "ok"} }}
		req := &llm.Request{Messages: []llm.Message{llm.TextMessage(llm.User, "x")}, ThinkingTokens: 10}
		if _, err := complete(t, s, llm.Endpoint{Name: c.name, Model: "m", API: llm.Chat}, req); err != nil {
			t.Fatal(err)
		}
		body := string(s.Requests()[0].Body)
		if !strings.Contains(body, c.want) || strings.Contains(body, "thinking") != (c.want != "") {
			t.Errorf("%s: %s", c.name, body)
		}
	}
}

// The forms that other servers give to answers.
func TestForeignAnswers(t *testing.T) {
	t.Parallel()
	extra := value.NewObject(0)
	extra.Set("provider", value.Str("P"))
	extra.Set("stop_reason", value.Str("s"))
	for _, c := range []struct {
		name, body string
		want       llm.Response
	}{
		{"reasoning and cost", `{"id":"i","model":"m2","provider":"P","choices":[{"finish_reason":"stop","stop_reason":"s","prompt_logprobs":null,
			"message":{"role":"assistant","content":"hi","reasoning":"why"}}],
			"usage":{"prompt_tokens":10,"completion_tokens":2,"cost":0.5,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":3}}}`,
			llm.Response{
				ID: "i", Model: "m2", Finish: llm.Stopped, Extra: extra, Cost: ptr(0.5),
				Usage:   &llm.Usage{Prompt: 10, Completion: 2, Cached: 4, CacheWrite: 3},
				Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{{Text: "hi"}}, Reasoning: "why"},
			}},
		{"hits of a cache, no cost", `{"choices":[{"finish_reason":"length","message":{"content":"hi"}}],
			"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_cache_hit_tokens":6}}`,
			llm.Response{
				Finish: llm.Length, Usage: &llm.Usage{Prompt: 10, Completion: 2, Cached: 6},
				Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{{Text: "hi"}}},
			}},
		{"list of parts", `{"choices":[{"finish_reason":"stop","message":{"content":[
			{"type":"thinking","thinking":[{"type":"text","text":"why"}]},{"type":"text","text":"hi"}]}}]}`,
			llm.Response{
				Finish:  llm.Stopped,
				Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{{Text: "hi"}}, Reasoning: "why"},
			}},
		{"calls without ids", `{"choices":[{"finish_reason":"stop","message":{"content":null,"tool_calls":[
			{"type":"function","function":{"name":"a","arguments":"{}"}},{"type":"function","function":{"name":"b","arguments":"{"}}]}}]}`,
			llm.Response{
				Finish: llm.CallsMade,
				Message: llm.Message{Role: llm.Assistant, Calls: []llm.ToolCall{
					{ID: "call_2", Name: "a", Arguments: "{}"}, {ID: "call_4", Name: "b", Arguments: "{"},
				}},
			}},
		{"refusal", `{"choices":[{"finish_reason":"stop","message":{"content":null,"refusal":"No."}}]}`,
			llm.Response{Finish: llm.Stopped, Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{{Text: "No."}}}}},
		{"wrong types", `{"id":7,"choices":[{"finish_reason":null,"token_ids":["x"],"message":{"content":7,"tool_calls":"x"}}],"usage":"x"}`,
			llm.Response{Finish: llm.Stopped, Message: llm.Message{Role: llm.Assistant}}},
		{"arguments that are no text", `{"choices":[{"message":{"tool_calls":[{"id":"i","function":{"name":"a","arguments":{"b":1}}}]}}]}`,
			llm.Response{
				Finish:  llm.CallsMade,
				Message: llm.Message{Role: llm.Assistant, Calls: []llm.ToolCall{{ID: "i", Name: "a", Arguments: `{"b":1}`}}},
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			req := &llm.Request{Messages: []llm.Message{
				llm.TextMessage(llm.User, "x"), {Role: llm.Assistant, Calls: []llm.ToolCall{{ID: "call_3", Name: "a"}}},
			}}
			got, err := complete(t, says(c.body), llm.Endpoint{Name: "p/m", Model: "m", API: llm.Chat}, req)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&c.want, got, cmp.Comparer(func(a, b *value.Object) bool {
				return (a == nil) == (b == nil) && (a == nil || value.Repr(a) == value.Repr(b))
			})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An answer that is an error in its choice, as gateways have it.
func TestErrorInChoice(t *testing.T) {
	t.Parallel()
	body := `{"choices":[{"finish_reason":"error","error":{"code":502,"message":"the provider is gone"},"message":{"content":""}}]}`
	_, err := complete(t, says(body), llm.Endpoint{Name: "p/m", Model: "m", API: llm.Chat}, &llm.Request{})
	e, ok := err.(*llm.Error) //nolint:errorlint // it is the error itself
	if !ok || e.Kind != llm.Transient || e.Status != 502 || e.Message != "the provider is gone" {
		t.Errorf("%+v", err)
	}
}

// What only the provider can read goes back to it, with the marks it asked for.
func TestNativeChat(t *testing.T) {
	t.Parallel()
	body := `{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"hi","reasoning":"why","annotations":[],
		"reasoning_details":[{"type":"reasoning.encrypted","data":"xyz"}]}}]}`
	e := llm.Endpoint{Name: "p/m", Model: "m", API: llm.Chat}
	first, err := complete(t, says(body), e, &llm.Request{})
	if err != nil || first.Message.Native == nil {
		t.Fatalf("%+v, %v", first, err)
	}
	s := &llmtest.Server{Answer: func(*llmtest.Request) llmtest.Turn { return llmtest.Turn{Text: "ok"} }}
	if _, err := complete(t, s, e, &llm.Request{Messages: []llm.Message{first.Message}}); err != nil {
		t.Fatal(err)
	}
	want := `[{"content":"hi","reasoning_details":[{"type":"reasoning.encrypted","data":"xyz"}],"role":"assistant"}]`
	if got := s.Requests()[0].Body; !bytes.Contains(got, []byte(want)) {
		t.Errorf("body = %s", got)
	}
	first.Message.Cache, e.Name = true, "gateway/claude"
	if _, err := complete(t, s, e, &llm.Request{Messages: []llm.Message{first.Message}}); err != nil {
		t.Fatal(err)
	}
	want = `[{"content":[{"cache_control":{"type":"ephemeral"},"text":"hi","type":"text"}],"reasoning_details":[{"type":"reasoning.encrypted","data":"xyz"}],"role":"assistant"}]`
	if got := s.Requests()[1].Body; !bytes.Contains(got, []byte(want)) {
		t.Errorf("body = %s", got)
	}
}

func TestFailedResponse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body string
		kind llm.Kind
	}{
		{`{"id":"r","status":"failed","output":[],"error":{"code":"server_error","message":"broken"}}`, llm.Transient},
		{`{"id":"r","status":"failed","output":[],"error":{"code":"rate_limit_exceeded","message":"slow"}}`, llm.RateLimited},
		{`{"id":"r","status":"failed","output":[],"error":{"code":"x","message":"Your input exceeds the context window of this model."}}`, llm.ContextLength},
		{`{"id":"r","status":"cancelled","output":[]}`, llm.Transient},
	} {
		_, err := complete(t, says(c.body), llm.Endpoint{Name: "p/m", Model: "m", API: llm.Responses}, &llm.Request{})
		e, ok := err.(*llm.Error) //nolint:errorlint // it is the error itself
		if !ok || e.Kind != c.kind {
			t.Errorf("%s: %+v", c.body, err)
		}
	}
}

// The known limit bounds responses, whose reasoning may go on.
func TestResponsesOutputLimit(t *testing.T) {
	t.Parallel()
	s := &llmtest.Server{Answer: func(*llmtest.Request) llmtest.Turn { return llmtest.Turn{Text: "ok"} }}
	e := llm.Endpoint{Name: "p/m", Model: "m", API: llm.Responses, Info: llm.Info{OutputLimit: 777}}
	if _, err := complete(t, s, e, &llm.Request{}); err != nil {
		t.Fatal(err)
	}
	if body := s.Requests()[0].Body; !bytes.Contains(body, []byte(`"max_output_tokens":777`)) {
		t.Errorf("body = %s", body)
	}
}

func FuzzChatAnswer(f *testing.F) {
	f.Add([]byte(`{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"text":"x"}]}],"tool_calls":[{"function":{}}]}}],"usage":{"cost":1}}`))
	f.Add([]byte(`{"choices":[{"token_ids":[1e99,true],"logprobs":{"content":[{}]},"error":{}}],"prompt_token_ids":[9]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
		})}
		for _, api := range []llm.API{llm.Chat, llm.Responses} {
			m, err := openai.New(llm.Endpoint{Name: "p/claude", Model: "m", API: api, Base: "http://h/v1", HTTP: client})
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.Complete(t.Context(), &llm.Request{})
			if (got == nil) == (err == nil) {
				t.Errorf("%+v, %v", got, err)
			}
			if got != nil {
				// What was answered can be sent back, with a mark.
				got.Message.Cache = true
				_, err := m.Complete(t.Context(), &llm.Request{Messages: []llm.Message{got.Message}})
				if err != nil {
					t.Error(err)
				}
			}
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func ptr[T any](v T) *T { return &v }
