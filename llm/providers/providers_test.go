package providers_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/llm/providers"
	"github.com/proctor-run/proctor/value"
)

const key = "sk-secret/9f8e7d+key"

func apis() []llm.API { return []llm.API{llm.Chat, llm.Responses, llm.Anthropic, llm.Gemini} }

// eachAPI runs a test for every protocol.
func eachAPI(t *testing.T, run func(t *testing.T, api llm.API)) {
	t.Helper()
	for _, api := range apis() {
		t.Run(string(api), func(t *testing.T) {
			t.Parallel()
			run(t, api)
		})
	}
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

// base is the address for a protocol, with the version where the protocol wants it.
func base(api llm.API, address string) string {
	if api == llm.Chat || api == llm.Responses {
		return address + "/v1"
	}
	return address
}

func dial(t *testing.T, api llm.API, address string, change ...func(*llm.Endpoint)) llm.Model {
	t.Helper()
	e := llm.Endpoint{Name: "fake/model-x", Model: "model-x", API: api, Base: base(api, address), Key: key}
	for _, c := range change {
		c(&e)
	}
	m, err := providers.Dial(e)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// always answers every request with one turn.
func always(turn llmtest.Turn) func(*llmtest.Request) llmtest.Turn {
	return func(*llmtest.Request) llmtest.Turn { return turn }
}

func ask(text string) *llm.Request {
	return &llm.Request{Messages: []llm.Message{llm.TextMessage(llm.User, text)}}
}

func object(t *testing.T, text string) *value.Object {
	t.Helper()
	v, err := value.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o, ok := v.(*value.Object)
	if !ok {
		t.Fatalf("%s is not an object", text)
	}
	return o
}

func ptr[T any](v T) *T { return &v }

func TestAnswer(t *testing.T) {
	t.Parallel()
	eachAPI(t, func(t *testing.T, api llm.API) {
		s := &llmtest.Server{Key: key, Answer: always(llmtest.Turn{
			Text: "It is <done> & über.", Reasoning: "I thought.",
			Usage: &llm.Usage{Prompt: 1000, Completion: 50, Cached: 700},
		})}
		m := dial(t, api, serve(t, s), func(e *llm.Endpoint) { e.Info.InputLimit = 9 })
		if got := m.Info(); got.Name != "fake/model-x" || got.InputLimit != 9 {
			t.Errorf("Info = %+v", got)
		}
		got, err := m.Complete(t.Context(), ask("Do it."))
		if err != nil {
			t.Fatal(err)
		}
		want := &llm.Response{
			Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{{Text: "It is <done> & über."}}, Reasoning: "I thought."},
			Finish:  llm.Stopped, Model: "model-x", ID: "answer-1",
			Usage: &llm.Usage{Prompt: 1000, Completion: 50, Cached: 700},
		}
		got.Message.Native = nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		asked := s.Requests()
		if len(asked) != 1 || asked[0].Last() != "Do it." || asked[0].Model != "model-x" || asked[0].API != api {
			t.Errorf("requests = %+v", asked)
		}
		count := s.Counts()[llmtest.Account{Model: "model-x", Key: key}]
		if count.Requests != 1 || count.Answers != 1 || count.Usage != *want.Usage {
			t.Errorf("count = %+v", count)
		}
	})
}

// A limit of gigabytes is the server's to refuse: the library has a bound of its own.
func TestVeryLongAnswer(t *testing.T) {
	t.Parallel()
	eachAPI(t, func(t *testing.T, api llm.API) {
		s := &llmtest.Server{Answer: always(llmtest.Turn{Text: "ok"})}
		req := ask("x")
		req.MaxOutput = 1 << 31
		if _, err := dial(t, api, serve(t, s)).Complete(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if body := s.Requests()[0].Body; !bytes.Contains(body, []byte("2147483648")) {
			t.Errorf("body = %s", body)
		}
	})
}

func TestFinish(t *testing.T) {
	t.Parallel()
	eachAPI(t, func(t *testing.T, api llm.API) {
		for _, finish := range []llm.Finish{llm.Length, llm.Filtered} {
			s := &llmtest.Server{Answer: always(llmtest.Turn{Text: "part", Finish: finish})}
			got, err := dial(t, api, serve(t, s)).Complete(t.Context(), ask("x"))
			if err != nil || got.Finish != finish || got.Message.Text() != "part" {
				t.Errorf("%s: %+v, %v", finish, got, err)
			}
		}
	})
}

// A conversation with calls: what was answered goes back, and the signed reasoning with it.
func TestCallsRoundTrip(t *testing.T) {
	t.Parallel()
	eachAPI(t, func(t *testing.T, api llm.API) {
		s := &llmtest.Server{Answer: func(r *llmtest.Request) llmtest.Turn {
			if r.Turn > 0 {
				return llmtest.Turn{Text: "done"}
			}
			return llmtest.Turn{
				Text: "Two calls.", Reasoning: "Hm.", Signature: "c2lnbmVk",
				Calls: []llm.ToolCall{{Name: "bash", Arguments: `{"command":"ls <a>"}`}, {Name: "bash"}},
			}
		}}
		m := dial(t, api, serve(t, s))
		req := ask("List.")
		req.Tools = []llm.ToolSpec{{Name: "bash"}}
		first, err := m.Complete(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		calls := first.Message.Calls
		if first.Finish != llm.CallsMade || len(calls) != 2 || calls[0].ID == "" || calls[0].ID == calls[1].ID {
			t.Fatalf("answer = %+v", first)
		}
		if diff := cmp.Diff(llm.ToolCall{ID: calls[0].ID, Name: "bash", Arguments: `{"command":"ls <a>"}`}, calls[0]); diff != "" {
			t.Error(diff)
		}
		req.Messages = append(req.Messages, first.Message)
		for i, c := range calls {
			req.Messages = append(req.Messages, llm.Message{
				Role: llm.Tool, CallID: c.ID, Failed: i == 1, Parts: []llm.Part{{Text: fmt.Sprintf("result %d", i)}},
			})
		}
		last, err := m.Complete(t.Context(), req)
		if err != nil || last.Message.Text() != "done" {
			t.Fatalf("%+v, %v", last, err)
		}
		body := string(s.Requests()[1].Body)
		if signed := strings.Contains(body, "c2lnbmVk"); signed != (api != llm.Chat) {
			t.Errorf("signature sent: %v, in %s", signed, body)
		}
		got := s.Requests()[1].Messages
		if n := len(got); n < 4 || got[n-2].Text() != "result 0" || !strings.HasSuffix(got[n-1].Text(), "result 1") {
			t.Errorf("messages = %+v", got)
		}
	})
}

// representative has one of everything.
func representative(t *testing.T) *llm.Request {
	t.Helper()
	return &llm.Request{
		Messages: []llm.Message{
			llm.TextMessage(llm.System, "Be brief."),
			{Role: llm.User, Parts: []llm.Part{
				{Text: "What is this?"},
				{Image: &llm.Image{MediaType: "image/png", Data: []byte("PNG")}},
				{Image: &llm.Image{MediaType: "image/jpeg", URL: "https://pictures.example/a.jpg"}},
			}},
			{Role: llm.Assistant, Parts: []llm.Part{{Text: "I look."}}, Reasoning: "Look first.", Calls: []llm.ToolCall{
				{ID: "call:1", Name: "view", Arguments: `{"path":"a"}`}, {ID: "call_2", Name: "bash", Arguments: `not json`},
			}},
			{Role: llm.Tool, CallID: "call:1", Parts: []llm.Part{{Text: "a picture"}, {Image: &llm.Image{URL: "data:image/gif;base64,R0lG"}}}},
			{Role: llm.Tool, CallID: "call_2", Failed: true, Parts: []llm.Part{{Text: "no such command"}}, Cache: true},
			llm.TextMessage(llm.System, "Time is short."),
			{Role: llm.User, Parts: []llm.Part{{Text: "Go on."}}, Cache: true},
		},
		Tools: []llm.ToolSpec{
			{Name: "view", Description: "Shows a file.", Parameters: object(t, `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
			{Name: "bash"},
		},
		MaxOutput: 2000, Temperature: ptr(0.5), Effort: "medium", SendReasoning: true, Tokens: true, SessionID: "s-1",
		Extra: object(t, `{"top_p":0.9,"metadata":{"b":1,"a":"ü"}}`),
	}
}

var update = flag.Bool("update", false, "write the golden files")

// The bodies are in testdata.
func TestBodies(t *testing.T) {
	t.Parallel()
	eachAPI(t, func(t *testing.T, api llm.API) {
		s := &llmtest.Server{Answer: always(llmtest.Turn{Text: "ok"})}
		m := dial(t, api, serve(t, s), func(e *llm.Endpoint) { e.Model = "claude-x" })
		if _, err := m.Complete(t.Context(), representative(t)); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := json.Indent(&got, s.Requests()[0].Body, "", "  "); err != nil {
			t.Fatal(err)
		}
		got.WriteByte('\n')
		file := filepath.Join("testdata", string(api)+".json")
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Error(diff)
		}
	})
}

// A header's place and value, for every protocol.
func TestAddressAndKey(t *testing.T) {
	t.Parallel()
	type want struct{ path, header, value string }
	for _, c := range []struct {
		name   string
		api    llm.API
		suffix string // of the base
		key    string
		bearer bool
		want   want
	}{
		{"chat", llm.Chat, "/v1", key, false, want{"/v1/chat/completions", "Authorization", "Bearer " + key}},
		{"chat slash", llm.Chat, "/api/v1/", key, false, want{"/api/v1/chat/completions", "Authorization", "Bearer " + key}},
		{"chat no key", llm.Chat, "/v1", "", false, want{"/v1/chat/completions", "Authorization", ""}},
		{"responses", llm.Responses, "/v1", key, false, want{"/v1/responses", "Authorization", "Bearer " + key}},
		{"anthropic", llm.Anthropic, "", key, false, want{"/v1/messages", "X-Api-Key", key}},
		{"anthropic version", llm.Anthropic, "/gate/v1", key, false, want{"/gate/v1/messages", "X-Api-Key", key}},
		{"anthropic bearer", llm.Anthropic, "", key, true, want{"/v1/messages", "Authorization", "Bearer " + key}},
		{"anthropic no key", llm.Anthropic, "", "", false, want{"/v1/messages", "X-Api-Key", ""}},
		{"gemini", llm.Gemini, "", key, false, want{"/v1beta/models/model-x:generateContent", "X-Goog-Api-Key", key}},
		{"gemini version", llm.Gemini, "/v1beta", key, false, want{"/v1beta/models/model-x:generateContent", "X-Goog-Api-Key", key}},
		{"gemini bearer", llm.Gemini, "", key, true, want{"/v1beta/models/model-x:generateContent", "Authorization", "Bearer " + key}},
		{"gemini no key", llm.Gemini, "", "", false, want{"/v1beta/models/model-x:generateContent", "X-Goog-Api-Key", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &llmtest.Server{Answer: always(llmtest.Turn{Text: "ok"})}
			address := serve(t, s)
			m := dial(t, c.api, address, func(e *llm.Endpoint) { e.Base, e.Key, e.Bearer = address+c.suffix, c.key, c.bearer })
			if _, err := m.Complete(t.Context(), ask("x")); err != nil {
				t.Fatal(err)
			}
			got := s.Requests()[0]
			if got.Path != c.want.path || got.Header.Get(c.want.header) != c.want.value {
				t.Errorf("path %s, headers %v", got.Path, got.Header)
			}
			if c.api == llm.Anthropic && got.Header.Get("Anthropic-Version") != "2023-06-01" {
				t.Errorf("headers = %v", got.Header)
			}
			for name, values := range got.Header {
				for _, v := range values {
					if c.key != "" && name != c.want.header && strings.Contains(v, c.key) {
						t.Errorf("the key is also in %s", name)
					}
				}
			}
		})
	}
}

// Variables of the process change nothing.
func TestNoVariables(t *testing.T) {
	for _, name := range []string{
		"OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL",
	} {
		t.Setenv(name, "http://127.0.0.1:1/elsewhere")
	}
	for _, name := range []string{
		"OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_WEBHOOK_SECRET",
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE", "GOOGLE_API_KEY", "GEMINI_API_KEY",
		"GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION",
	} {
		t.Setenv(name, "planted-value")
	}
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Planted: planted-value")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Planted: planted-value")
	t.Setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
	t.Setenv("GOOGLE_GENAI_USE_ENTERPRISE", "true")
	for _, api := range apis() {
		for _, k := range []string{"", key} {
			s := &llmtest.Server{Answer: always(llmtest.Turn{Text: "ok"})}
			m := dial(t, api, serve(t, s), func(e *llm.Endpoint) { e.Key = k })
			if _, err := m.Complete(t.Context(), ask("x")); err != nil {
				t.Fatalf("%s: %v", api, err)
			}
			for name, values := range s.Requests()[0].Header {
				if strings.Contains(strings.Join(values, " "), "planted-value") {
					t.Errorf("%s: %s comes from a variable", api, name)
				}
			}
		}
	}
}

func TestRefusedParameters(t *testing.T) {
	t.Parallel()
	type member struct{ name, refusal string }
	for _, c := range []struct {
		name string
		api  llm.API
		// member is refused whenever it is sent.
		refused []member
		// instead is in the body that is taken.
		instead string
		// calls is how many requests two calls make.
		calls int
	}{
		{"session id", llm.Chat, []member{{"session_id", "Unrecognized request argument supplied: session_id"}}, `"return_token_ids"`, 4},
		{"both", llm.Chat, []member{
			{"session_id", "Unrecognized request arguments supplied: return_token_ids, session_id"}, {"return_token_ids", "x"},
		}, `"temperature"`, 4},
		{"temperature", llm.Chat, []member{{"temperature", "Unsupported value: 'temperature' does not support 0.5 with this model."}}, `"session_id"`, 3},
		{"max tokens", llm.Chat, []member{
			{"max_tokens", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."},
		}, `"max_completion_tokens":2000`, 3},
		{"two in turn", llm.Chat, []member{
			{"max_tokens", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."},
			{"temperature", "Unsupported value: 'temperature'"},
		}, `"max_completion_tokens":2000`, 4},
		{"effort", llm.Chat, []member{{"reasoning_effort", "Unrecognized request argument supplied: reasoning_effort"}}, `"temperature"`, 3},
		{"encrypted content", llm.Responses, []member{{"include", "Encrypted content is not supported with this model."}}, `"reasoning"`, 3},
		{"responses' temperature", llm.Responses, []member{{"temperature", "Unsupported parameter: 'temperature' is not supported with this model."}}, `"reasoning"`, 3},
		{"anthropic's session", llm.Anthropic, []member{{"session_id", "session_id: Extra inputs are not permitted"}}, `"thinking"`, 3},
		{"anthropic's budget", llm.Anthropic, []member{
			{"budget_tokens", `"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort".`},
		}, `"output_config":{"effort":"medium"}`, 3},
		{"gemini's level", llm.Gemini, []member{{"thinkingLevel", "Thinking level is not supported for this model."}}, `"thinkingBudget":2048`, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &llmtest.Server{Answer: func(r *llmtest.Request) llmtest.Turn {
				for _, m := range c.refused {
					if bytes.Contains(r.Body, []byte(`"`+m.name+`":`)) {
						return llmtest.Turn{Fault: &llmtest.Fault{Status: 400, Message: m.refusal}}
					}
				}
				return llmtest.Turn{Text: "ok"}
			}}
			m := dial(t, c.api, serve(t, s))
			req := ask("x")
			req.MaxOutput, req.Temperature, req.Effort, req.Tokens, req.SessionID = 2000, ptr(0.5), "medium", true, "s-1"
			if c.api == llm.Anthropic {
				req.MaxOutput = 5000
			}
			for range 2 {
				if got, err := m.Complete(t.Context(), req); err != nil || got.Message.Text() != "ok" {
					t.Fatalf("%+v, %v", got, err)
				}
			}
			asked := s.Requests()
			if len(asked) != c.calls {
				t.Errorf("%d requests", len(asked))
			}
			if body := asked[len(asked)-1].Body; !bytes.Contains(body, []byte(c.instead)) {
				t.Errorf("%s is not in %s", c.instead, body)
			}
		})
	}
}

// A refusal that names nothing of the request is final.
func TestRefusalIsFinal(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"Unrecognized request argument supplied: frequency", "temperature must be below 2", "unsupported: session_id_x"} {
		s := &llmtest.Server{Answer: always(llmtest.Turn{Fault: &llmtest.Fault{Status: 400, Message: text}})}
		req := ask("x")
		req.Temperature, req.SessionID = ptr(0.5), "s-1"
		_, err := dial(t, llm.Chat, serve(t, s)).Complete(t.Context(), req)
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != llm.BadRequest || len(s.Requests()) != 1 {
			t.Errorf("%s: %v after %d requests", text, err, len(s.Requests()))
		}
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	s := &llmtest.Server{Answer: always(llmtest.Turn{
		Text: "ab", LogProbs: []float64{-0.5, -1.25}, CompletionTokenIDs: []int64{7, 8}, PromptTokenIDs: []int64{1, 2, 3}, Cost: ptr(0.25),
	})}
	address := serve(t, s)
	for _, c := range []struct {
		api                llm.API
		prompt, completion []int64
		logprobs           []float64
		cost               *float64
	}{
		{llm.Chat, []int64{1, 2, 3}, []int64{7, 8}, []float64{-0.5, -1.25}, ptr(0.25)},
		{llm.Responses, nil, nil, []float64{-0.5, -1.25}, ptr(0.25)},
		{llm.Gemini, nil, []int64{7, 8}, []float64{-0.5, -1.25}, nil},
		{llm.Anthropic, nil, nil, nil, nil},
	} {
		req := ask("x")
		req.Tokens = true
		got, err := dial(t, c.api, address).Complete(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		want := &llm.Response{PromptTokenIDs: c.prompt, CompletionTokenIDs: c.completion, LogProbs: c.logprobs, Cost: c.cost}
		have := &llm.Response{PromptTokenIDs: got.PromptTokenIDs, CompletionTokenIDs: got.CompletionTokenIDs, LogProbs: got.LogProbs, Cost: got.Cost}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s: %s", c.api, diff)
		}
		if got.Extra != nil {
			t.Errorf("%s: extra = %v", c.api, value.Repr(got.Extra))
		}
	}
}

func TestPreviousID(t *testing.T) {
	t.Parallel()
	s := &llmtest.Server{Answer: func(r *llmtest.Request) llmtest.Turn { return llmtest.Turn{Text: fmt.Sprint("turn ", r.Turn)} }}
	m := dial(t, llm.Responses, serve(t, s))
	previous := ""
	for i := range 3 {
		req := ask("more")
		req.PreviousID = previous
		got, err := m.Complete(t.Context(), req)
		if err != nil || got.Message.Text() != fmt.Sprint("turn ", i) {
			t.Fatalf("%+v, %v", got, err)
		}
		previous = got.ID
	}
	if body := s.Requests()[2].Body; !bytes.Contains(body, []byte(`"previous_response_id":"answer-2"`)) {
		t.Errorf("body = %s", body)
	}
}

func TestDialRefuses(t *testing.T) {
	t.Parallel()
	good := llm.Endpoint{Name: "p/m", Model: "m", API: llm.Chat, Base: "http://h/v1", Key: "k"}
	for name, change := range map[string]func(*llm.Endpoint){
		"no protocol":     func(e *llm.Endpoint) { e.API = "telepathy" },
		"no model":        func(e *llm.Endpoint) { e.Model = "" },
		"no scheme":       func(e *llm.Endpoint) { e.Base = "h/v1" },
		"no host":         func(e *llm.Endpoint) { e.Base = "http:///v1" },
		"other scheme":    func(e *llm.Endpoint) { e.Base = "file://h/v1" },
		"password in it":  func(e *llm.Endpoint) { e.Base = "http://u:secret@h/v1" },
		"query":           func(e *llm.Endpoint) { e.Base = "http://h/v1?key=secret" },
		"line in the key": func(e *llm.Endpoint) { e.Key = "secret\nX: y" },
	} {
		for _, api := range apis() {
			e := good
			e.API = api
			change(&e)
			m, err := providers.Dial(e)
			if m != nil || err == nil || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s, %s: %v, %v", name, api, m, err)
			}
		}
	}
	if _, err := providers.Dial(good); err != nil {
		t.Error(err)
	}
}

func BenchmarkComplete(b *testing.B) {
	for _, api := range apis() {
		b.Run(string(api), func(b *testing.B) {
			s := &llmtest.Server{Answer: always(llmtest.Turn{Text: strings.Repeat("word ", 200)}), Forget: true}
			server := httptest.NewServer(s)
			defer server.Close()
			m, err := providers.Dial(llm.Endpoint{Name: "p/m", Model: "m", API: api, Base: base(api, server.URL)})
			if err != nil {
				b.Fatal(err)
			}
			req := &llm.Request{}
			for i := range 40 {
				role := llm.User
				if i%2 == 1 {
					role = llm.Assistant
				}
				req.Messages = append(req.Messages, llm.TextMessage(role, strings.Repeat("text ", 400)))
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Complete(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
