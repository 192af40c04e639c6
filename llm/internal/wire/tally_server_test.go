package wire_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/internal/wire"
	"github.com/proctor-run/proctor/llm/llmtest"
)

// request is how a protocol asks, in one form of its answers.
type request struct {
	name string
	api  llm.API
	path string
	body string
}

func requests() []request {
	const messages = `"messages":[{"role":"user","content":"say something"}]`
	const contents = `{"contents":[{"role":"user","parts":[{"text":"say something"}]}]}`
	return []request{
		{"chat", llm.Chat, "/v1/chat/completions", `{"model":"m",` + messages + `}`},
		{"chat stream", llm.Chat, "/v1/chat/completions", `{"model":"m","stream":true,"stream_options":{"include_usage":true},` + messages + `}`},
		{"responses", llm.Responses, "/v1/responses", `{"model":"m","input":"say something"}`},
		{"responses stream", llm.Responses, "/v1/responses", `{"model":"m","stream":true,"input":"say something"}`},
		{"anthropic", llm.Anthropic, "/v1/messages", `{"model":"m","max_tokens":9,` + messages + `}`},
		{"anthropic stream", llm.Anthropic, "/v1/messages", `{"model":"m","stream":true,"max_tokens":9,` + messages + `}`},
		{"gemini", llm.Gemini, "/v1beta/models/m:generateContent", contents},
		{"gemini stream", llm.Gemini, "/v1beta/models/m:streamGenerateContent?alt=sse", contents},
		{"gemini list", llm.Gemini, "/v1beta/models/m:streamGenerateContent", contents},
	}
}

// fetch asks a server that gives one answer.
func fetch(t *testing.T, r request, turn llmtest.Turn) (body, contentType string, used llm.Usage) {
	t.Helper()
	s := &llmtest.Server{Answer: func(*llmtest.Request) llmtest.Turn { return turn }}
	h := httptest.NewServer(s)
	defer h.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+r.path, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := h.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v, %s", data, err, res.Status)
	}
	return string(data), res.Header.Get("Content-Type"), s.Counts()[llmtest.Account{Model: "m"}].Usage
}

// tallied reads a text in pieces.
func tallied(t *testing.T, api llm.API, contentType string, pieces ...string) wire.Tallied {
	t.Helper()
	tally := wire.NewTally(api, contentType)
	for _, p := range pieces {
		if n, err := tally.Write([]byte(p)); n != len(p) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	return tally.Result()
}

func TestUsageIsWhatTheServerCounted(t *testing.T) {
	t.Parallel()
	for _, turn := range []llmtest.Turn{
		{Text: "one two three", Finish: llm.Stopped},
		{Text: "größer \"als\"\n", Reasoning: "hmm\t\U0001F600", Signature: "c2ln", Finish: llm.Length},
		{Text: "x", Calls: []llm.ToolCall{{Name: "f", Arguments: `{"a":"\\"}`}, {Name: "g"}}, Finish: llm.CallsMade},
		{Text: "no", Usage: &llm.Usage{Prompt: 1000, Completion: 77, Cached: 600, CacheWrite: 100}, Finish: llm.Filtered, Cost: new(0.25)},
	} {
		for _, r := range requests() {
			t.Run(r.name+" "+string(turn.Finish), func(t *testing.T) {
				t.Parallel()
				body, contentType, used := fetch(t, r, turn)
				if r.api == llm.Gemini {
					used.CacheWrite = 0 // the protocol does not tell
				}
				want := wire.Tallied{Usage: &used, Model: "m", Finish: turn.Finish, Whole: true}
				if r.api == llm.Chat || r.api == llm.Responses {
					want.Cost = turn.Cost
				}
				got := tallied(t, r.api, contentType, body)
				want.Text = got.Text
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("%s\n got %s\nwant %s", body, show(got), show(want))
				}
				if n := textOf(turn); got.Text < n || got.Text > n+4 {
					t.Errorf("%d bytes of text, not about %d: %s", got.Text, n, body)
				}
				for cut := range len(body) {
					if got := tallied(t, r.api, contentType, body[:cut], body[cut:]); !reflect.DeepEqual(got, want) {
						t.Fatalf("cut at %d: %s", cut, show(got))
					}
				}
				if got := tallied(t, r.api, contentType, strings.Split(body, "")...); !reflect.DeepEqual(got, want) {
					t.Errorf("byte by byte: %s", show(got))
				}
			})
		}
	}
}

// textOf is how much text a turn has; what a call without arguments has is no text.
func textOf(turn llmtest.Turn) int64 {
	n := len(turn.Text) + len(turn.Reasoning)
	for _, c := range turn.Calls {
		n += len(c.Arguments)
	}
	return int64(n)
}

func show(r wire.Tallied) string {
	usage, cost := "none", "none"
	if r.Usage != nil {
		usage = fmt.Sprintf("%+v", *r.Usage)
	}
	if r.Cost != nil {
		cost = fmt.Sprint(*r.Cost)
	}
	return fmt.Sprintf("usage %s, cost %s, model %q, finish %q, whole %v, failure %s, text %d", usage, cost, r.Model, r.Finish, r.Whole, r.Failure, r.Text)
}

// Of an answer that ends early nothing is made up: it is not whole before its last event, and
// no count is beyond the true one.
func TestCutAnswersAreNotWhole(t *testing.T) {
	t.Parallel()
	turn := llmtest.Turn{Text: "one two three", Reasoning: "hmm", Usage: &llm.Usage{Prompt: 30, Completion: 7, Cached: 20}}
	ends := map[string]string{
		"chat stream": `"finish_reason":"stop"`, "responses stream": "event: response.completed",
		"anthropic stream": "event: message_stop", "gemini stream": `"finishReason":"STOP"`,
	}
	for _, r := range requests() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			body, contentType, used := fetch(t, r, turn)
			last := len(strings.TrimSpace(body))
			if end := ends[r.name]; end != "" {
				last = strings.LastIndex(body, end)
			}
			for cut := range len(body) {
				got := tallied(t, r.api, contentType, body[:cut])
				if got.Whole && cut < last {
					t.Fatalf("%s is whole: %s", body[:cut], show(got))
				}
				if u := got.Usage; u != nil && (u.Prompt != used.Prompt || u.Cached != used.Cached || u.Completion > used.Completion) {
					t.Fatalf("%s: %s", body[:cut], show(got))
				}
				if got.Failure != nil {
					t.Fatalf("%s: %s", body[:cut], show(got))
				}
			}
		})
	}
}

// Where the content type is wrong the text counts.
func TestContentTypesAreNotBelieved(t *testing.T) {
	t.Parallel()
	for _, r := range requests() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			body, contentType, _ := fetch(t, r, llmtest.Turn{Text: "one two three"})
			want := tallied(t, r.api, contentType, body)
			for _, wrong := range []string{"", "application/json", "text/event-stream", "text/plain; charset=utf-8", "\xff"} {
				for _, before := range []string{"", "\n\n", "\xef\xbb\xbf"} {
					if got := tallied(t, r.api, wrong, before+body); !reflect.DeepEqual(got, want) {
						t.Errorf("%q, %q: %s", wrong, before, show(got))
					}
				}
			}
		})
	}
}

// The failures that a server tells with the status of success.
func TestFaultsOfAServer(t *testing.T) {
	t.Parallel()
	for _, r := range requests() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			for _, kind := range []llmtest.FaultKind{llmtest.Malformed, llmtest.Empty} {
				body, contentType, _ := fetch(t, r, llmtest.Turn{Fault: &llmtest.Fault{Kind: kind}})
				got := tallied(t, r.api, contentType, body)
				if got.Whole != (kind == llmtest.Empty) || got.Finish != "" && r.api != llm.Responses || got.Failure != nil {
					t.Errorf("%s: %s", body, show(got))
				}
			}
		})
	}
}
