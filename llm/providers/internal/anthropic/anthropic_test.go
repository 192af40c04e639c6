package anthropic_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/llm/providers/internal/anthropic"
)

// sent makes one call and returns the body that it sent.
func sent(t *testing.T, e llm.Endpoint, req *llm.Request) map[string]any {
	t.Helper()
	s := &llmtest.Server{Answer: func(*llmtest.Request) llmtest.Turn { return llmtest.Turn{Text: "ok"} }}
	server := httptest.NewServer(s)
	defer server.Close()
	e.Name, e.Model, e.Base = "anthropic/m", "m", server.URL
	m, err := anthropic.New(e)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Complete(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	var body map[string]any
	if err := json.Unmarshal(s.Requests()[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	return body
}

func TestBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		limit            int64
		req              llm.Request
		output, thinking float64 // 0: no thinking
	}{
		{"nothing known", 0, llm.Request{}, 4096, 0},
		{"known limit", 64000, llm.Request{}, 64000, 0},
		{"very long", 0, llm.Request{MaxOutput: 1000000}, 1000000, 0},
		{"small budget", 64000, llm.Request{ThinkingTokens: 10}, 64000, 1024},
		{"budget before effort", 64000, llm.Request{ThinkingTokens: 3000, Effort: "low"}, 64000, 3000},
		{"low", 0, llm.Request{Effort: "low"}, 4096, 1024},
		{"medium", 0, llm.Request{Effort: "medium"}, 4096, 2048},
		{"high", 0, llm.Request{Effort: "high"}, 8192, 4096},
		{"beyond the limit", 5000, llm.Request{Effort: "max"}, 5000, 2500},
		{"none", 0, llm.Request{Effort: "none"}, 4096, 0},
		{"default", 0, llm.Request{Effort: "default"}, 4096, 0},
	} {
		temperature := 0.5
		c.req.Temperature = &temperature
		c.req.Messages = []llm.Message{llm.TextMessage(llm.User, "x")}
		body := sent(t, llm.Endpoint{Info: llm.Info{OutputLimit: c.limit}}, &c.req)
		budget := 0.0
		if thinking, ok := body["thinking"].(map[string]any); ok {
			budget, _ = thinking["budget_tokens"].(float64)
		}
		if body["max_tokens"] != c.output || budget != c.thinking {
			t.Errorf("%s: max_tokens %v, budget %v", c.name, body["max_tokens"], budget)
		}
		if _, ok := body["temperature"]; ok != (c.thinking == 0) {
			t.Errorf("%s: temperature sent: %v", c.name, ok)
		}
	}
}

func TestMarks(t *testing.T) {
	t.Parallel()
	native := &llm.Native{API: llm.Anthropic, Content: []byte(
		`[{"type":"text","text":"a"},{"type":"thinking","thinking":"b","signature":"c"}]`)}
	body := sent(t, llm.Endpoint{}, &llm.Request{Messages: []llm.Message{
		{Role: llm.System, Parts: []llm.Part{{Text: "s"}}, Cache: true},
		{Role: llm.User, Parts: []llm.Part{{Text: "1"}}, Cache: true},
		{Role: llm.Assistant, Native: native, Cache: true},
		{Role: llm.User, Parts: []llm.Part{{Text: "2"}, {Text: "3"}}, Cache: true},
		{Role: llm.Assistant, Parts: []llm.Part{{Text: " "}}, Calls: []llm.ToolCall{{ID: "i", Name: "n"}}},
		{Role: llm.Tool, CallID: "i", Cache: true},
	}})
	mark := map[string]any{"type": "ephemeral"}
	text := func(s string) map[string]any { return map[string]any{"type": "text", "text": s} }
	marked := func(m map[string]any) map[string]any { m["cache_control"] = mark; return m }
	want := map[string]any{
		"system": []any{text("s")},
		"messages": []any{
			map[string]any{"role": "user", "content": []any{marked(text("1"))}},
			map[string]any{"role": "assistant", "content": []any{
				marked(text("a")), map[string]any{"type": "thinking", "thinking": "b", "signature": "c"},
			}},
			map[string]any{"role": "user", "content": []any{text("2"), marked(text("3"))}},
			map[string]any{"role": "assistant", "content": []any{
				map[string]any{"type": "tool_use", "id": "i", "name": "n", "input": map[string]any{}},
			}},
			map[string]any{"role": "user", "content": []any{marked(map[string]any{"type": "tool_result", "tool_use_id": "i"})}},
		},
	}
	got := map[string]any{"system": body["system"], "messages": body["messages"]}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFullWindow(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]llm.Finish{
		`{"content":[],"stop_reason":"model_context_window_exceeded"}`:                           "",
		`{"content":[{"type":"text","text":"x"}],"stop_reason":"model_context_window_exceeded"}`: llm.Length,
	} {
		got, err := answered(t, []byte(body))
		if want == "" {
			e, ok := err.(*llm.Error) //nolint:errorlint // it is the error itself
			if !ok || e.Kind != llm.ContextLength {
				t.Errorf("%v", err)
			}
		} else if err != nil || got.Finish != want {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

// answered makes a call that a body answers, and another one with what came of it.
func answered(t *testing.T, body []byte) (*llm.Response, error) {
	t.Helper()
	client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
	})}
	m, err := anthropic.New(llm.Endpoint{Name: "anthropic/m", Model: "m", HTTP: client})
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Complete(t.Context(), &llm.Request{})
	if err != nil {
		return nil, err
	}
	got.Message.Cache = true
	if _, err := m.Complete(t.Context(), &llm.Request{Messages: []llm.Message{got.Message}}); err != nil {
		t.Errorf("what was answered cannot be sent back: %v", err)
	}
	return got, nil
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"thinking","thinking":"x"},{"type":"tool_use","input":7},{"type":"new"}],"usage":{}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if got, err := answered(t, body); (got == nil) == (err == nil) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
