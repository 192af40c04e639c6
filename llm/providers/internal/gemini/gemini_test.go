package gemini_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/providers/internal/gemini"
)

// exchange makes a call that a body answers, and returns what was sent as well.
func exchange(t *testing.T, model, answer string, req *llm.Request) (*llm.Response, string, error) {
	t.Helper()
	var sent []byte
	client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		var err error
		if sent, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader([]byte(answer))), Request: r}, nil
	})}
	m, err := gemini.New(llm.Endpoint{Name: "gemini/" + model, Model: model, Key: "k", HTTP: client})
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Complete(t.Context(), req)
	return got, string(sent), err
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

const fine = `{"candidates":[{"content":{"role":"model","parts":[{"text":"ok"}]},"finishReason":"STOP"}]}`

func TestThinking(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		model string
		req   llm.Request
		want  string
	}{
		{"gemini-2.5-pro", llm.Request{}, `{"contents":[]}`},
		{"gemini-2.5-pro", llm.Request{Effort: "default"}, `{"contents":[]}`},
		{"gemini-2.5-pro", llm.Request{Effort: "high"}, `{"contents":[],"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":4096}}}`},
		{"gemini-2.5-pro", llm.Request{Effort: "none"}, `{"contents":[],"generationConfig":{"thinkingConfig":{"thinkingBudget":0}}}`},
		{"gemini-2.5-pro", llm.Request{Effort: "low", ThinkingTokens: 77}, `{"contents":[],"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":77}}}`},
		{"gemini-3-pro", llm.Request{Effort: "low"}, `{"contents":[],"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"LOW"}}}`},
		{"gemini-3-pro", llm.Request{Effort: "max"}, `{"contents":[],"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"HIGH"}}}`},
	} {
		if _, sent, err := exchange(t, c.model, fine, &c.req); err != nil || sent != c.want {
			t.Errorf("%s %+v: %s, %v", c.model, c.req, sent, err)
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	signed := `{"role":"model","parts":[{"text":"why","thought":true},{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"c2ln","new":true}]}`
	for _, c := range []struct {
		name, body string
		want       *llm.Response
	}{
		{"signed call without an id", `{"candidates":[{"content":` + signed + `,"finishReason":"STOP"}],
			"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":3,"thoughtsTokenCount":4,"cachedContentTokenCount":5,"toolUsePromptTokenCount":1},
			"modelVersion":"v","responseId":"r"}`,
			&llm.Response{
				ID: "r", Model: "v", Finish: llm.CallsMade, Usage: &llm.Usage{Prompt: 11, Completion: 7, Cached: 5},
				Message: llm.Message{
					Role: llm.Assistant, Reasoning: "why", Calls: []llm.ToolCall{{ID: "call_1", Name: "f", Arguments: `{"a":1}`}},
					Native: &llm.Native{API: llm.Gemini, Content: []byte(signed)},
				},
			}},
		{"cut short before the first word", `{"candidates":[{"content":{},"finishReason":"MAX_TOKENS"}]}`,
			&llm.Response{Finish: llm.Length, Message: llm.Message{Role: llm.Assistant}}},
		{"no content", `{"candidates":[{"finishReason":"SAFETY"}]}`,
			&llm.Response{Finish: llm.Filtered, Message: llm.Message{Role: llm.Assistant}}},
	} {
		got, _, err := exchange(t, "m", c.body, &llm.Request{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		_, sent, err := exchange(t, "m", fine, &llm.Request{Messages: []llm.Message{got.Message}})
		if want := `{"contents":[` + signed + `]}`; err != nil || got.Message.Native != nil && sent != want {
			t.Errorf("%s: %s, %v", c.name, sent, err)
		}
	}
}

func TestNoAnswer(t *testing.T) {
	t.Parallel()
	for body, kind := range map[string]llm.Kind{
		`{"promptFeedback":{"blockReason":"SAFETY","blockReasonMessage":"bad"}}`: llm.Refused,
		`{"candidates":[]}`: llm.Transient,
		`{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}`: llm.Transient,
		`{"candidates":7}`: llm.Transient,
		`[]`:               llm.Transient,
	} {
		_, _, err := exchange(t, "m", body, &llm.Request{})
		e, ok := err.(*llm.Error) //nolint:errorlint // it is the error itself
		if !ok || e.Kind != kind {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(`{"candidates":[{"content":{"parts":[{"functionCall":{"args":null},"thoughtSignature":"x"}]},"logprobsResult":{"chosenCandidates":[{}]}}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		got, _, err := exchange(t, "m", body, &llm.Request{Tokens: true})
		if (got == nil) == (err == nil) {
			t.Fatalf("%+v, %v", got, err)
		}
		if got != nil {
			if _, _, err := exchange(t, "m", fine, &llm.Request{Messages: []llm.Message{got.Message}}); err != nil {
				t.Error(err)
			}
		}
	})
}
