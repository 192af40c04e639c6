package gateway_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/gateway"
	"github.com/proctor-run/proctor/llm/llmtest"
)

const providerKey = "sk-the-providers-own-key"

// world is a provider's server, and a gateway to it.
type world struct {
	*gateway.Gateway
	provider *llmtest.Server
	url      string // of the gateway
	direct   string // of the provider
	stopped  chan error
}

type setup struct {
	api    llm.API
	answer func(*llmtest.Request) llmtest.Turn
	budget llm.Budget
	prices *llm.Prices
	change func(*gateway.Gateway)
}

func say(text string) func(*llmtest.Request) llmtest.Turn {
	return func(*llmtest.Request) llmtest.Turn {
		return llmtest.Turn{Text: text, Usage: &llm.Usage{Prompt: 120, Completion: 30, Cached: 20}}
	}
}

func open(t testing.TB, s setup) *world {
	t.Helper()
	w := &world{provider: &llmtest.Server{Key: providerKey, Answer: s.answer}, stopped: make(chan error, 100)}
	if s.answer == nil {
		w.provider.Answer = say("hello")
	}
	provider := httptest.NewServer(w.provider)
	t.Cleanup(provider.Close)
	clock := &llmtest.Clock{}
	client := &llm.Client{Now: clock.Now, Wait: clock.Wait}
	route, err := client.Route("test/model", llm.Options{Base: provider.URL + "/v1", API: s.api, Env: []string{"TEST_API_KEY=" + providerKey}})
	if err != nil {
		t.Fatal(err)
	}
	route.Info.Prices = s.prices
	w.Gateway = &gateway.Gateway{
		Model: "test/model", Key: gateway.NewKey(), Route: route, Protocols: llm.Protocols("test/model", llm.Options{API: s.api}),
		Meter: llm.NewMeter(llm.OfTrial, s.budget, nil), Stop: func(err error) { w.stopped <- err },
	}
	if s.change != nil {
		s.change(w.Gateway)
	}
	w.Open()
	front := httptest.NewUnstartedServer(w.Gateway)
	front.Config.ErrorLog = log.New(panics{t}, "", 0)
	front.Start()
	t.Cleanup(func() {
		w.Close()
		front.Close()
	})
	w.url, w.direct = front.URL, provider.URL
	return w
}

// panics fails a test whose server tells of a panic.
type panics struct{ testing.TB }

func (p panics) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("panic")) {
		p.Errorf("%s", line)
	}
	return len(line), nil
}

// form is a call in the words of a protocol.
type form struct {
	name   string
	api    llm.API
	path   string
	body   string
	stream bool
}

func forms() []form {
	const chat = `"messages":[{"role":"user","content":"Hi."}]`
	gemini := `{"contents":[{"role":"user","parts":[{"text":"Hi."}]}]}`
	return []form{
		{"chat", llm.Chat, "/v1/chat/completions", `{"model":"model",` + chat + `}`, false},
		{"chat stream", llm.Chat, "/v1/chat/completions", `{"model":"model","stream":true,"stream_options":{"include_usage":true},` + chat + `}`, true},
		{"responses", llm.Responses, "/v1/responses", `{"model":"model","input":"Hi."}`, false},
		{"responses stream", llm.Responses, "/v1/responses", `{"model":"model","input":"Hi.","stream":true}`, true},
		{"anthropic", llm.Anthropic, "/v1/messages", `{"model":"model","max_tokens":9,` + chat + `}`, false},
		{"anthropic stream", llm.Anthropic, "/v1/messages?beta=true", `{"model":"model","max_tokens":9,"stream":true,` + chat + `}`, true},
		{"gemini", llm.Gemini, "/v1beta/models/model:generateContent", gemini, false},
		{"gemini stream", llm.Gemini, "/v1beta/models/model:streamGenerateContent?alt=sse", gemini, true},
		{"gemini list", llm.Gemini, "/v1beta/models/model:streamGenerateContent", gemini, true},
	}
}

// answer is what came of a call.
type answer struct {
	status int
	header http.Header
	body   string
	err    error // why it did not come whole
}

func post(t testing.TB, url, key, body string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(data), err}
}

func TestCallsArePassedOnAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, f := range forms() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			w, twin := open(t, setup{api: f.api}), open(t, setup{api: f.api}) // answers are numbered
			want := post(t, twin.direct+f.path, providerKey, f.body)
			got := post(t, w.url+f.path, w.Key, f.body)
			if got.err != nil || got.status != 200 || got.body != want.body || got.header.Get("Content-Type") != want.header.Get("Content-Type") {
				t.Fatalf("got %+v, the provider says %+v", got, want)
			}
			asked := w.provider.Requests()[0]
			if asked.Key != providerKey || string(asked.Body) != f.body || strings.Contains(fmt.Sprint(asked.Header), w.Key) {
				t.Errorf("the provider was asked %s with %v", asked.Body, asked.Header)
			}
			count := w.provider.Counts()[llmtest.Account{Model: "model", Key: providerKey}]
			spent := w.Meter.Spent()
			if spent.Calls != 1 || spent.Prompt != count.Usage.Prompt || spent.Completion != count.Usage.Completion ||
				spent.Cached != count.Usage.Cached || spent.Uncounted != 0 || spent.Unpriced != 1 {
				t.Errorf("counted %+v, the provider %+v", spent, count)
			}
			if w.Answered() != 1 || w.Failure() != nil {
				t.Errorf("answered %d, failure %v", w.Answered(), w.Failure())
			}
		})
	}
}

func TestUsageIsAskedForAndNotShown(t *testing.T) {
	t.Parallel()
	w, twin := open(t, setup{api: llm.Chat}), open(t, setup{api: llm.Chat})
	body := `{"model":"model","stream":true,"messages":[{"role":"user","content":"Hi."}]}`
	want := post(t, twin.direct+"/v1/chat/completions", providerKey, body)
	if got := post(t, w.url+"/v1/chat/completions", w.Key, body); got.err != nil || got.body != want.body {
		t.Errorf("got %q, %v; without the gateway it is %q", got.body, got.err, want.body)
	}
	if s := w.Meter.Spent(); s.Prompt != 120 || s.Completion != 30 || s.Uncounted != 0 {
		t.Errorf("counted %+v", s)
	}
}

func TestModelMayBeNamedWithItsProvider(t *testing.T) {
	t.Parallel()
	w := open(t, setup{api: llm.Anthropic})
	if got := post(t, w.url+"/v1/messages", w.Key, `{"model":"test/model","max_tokens":9,"messages":[]}`); got.status != 200 {
		t.Fatalf("got %+v", got)
	}
	if asked := w.provider.Requests()[0].Model; asked != "model" {
		t.Errorf("the provider was asked for %q", asked)
	}
}

// TestRefusals: what is refused reaches no provider and costs nothing.
func TestRefusals(t *testing.T) {
	t.Parallel()
	ok := `{"model":"model","messages":[]}`
	tool := func(tool string) string { return `{"model":"model","messages":[],"tools":[` + tool + `]}` }
	offline := func(g *gateway.Gateway) { g.Offline = true }
	closed := func(g *gateway.Gateway) { g.Open(); g.Close() }
	for _, c := range []struct {
		name, path, key, body string
		change                func(*gateway.Gateway)
		status                int
		says                  string
	}{
		{"no key", "/v1/chat/completions", "", ok, nil, 401, "key is missing"},
		{"the provider's key", "/v1/chat/completions", providerKey, ok, nil, 401, "another one"},
		{"another path", "/v1/files", "own", ok, nil, 404, "has no POST /v1/files"},
		{"another model", "/v1/chat/completions", "own", `{"model":"larger"}`, nil, 404, `no model \"larger\"`},
		{"no model", "/v1/chat/completions", "own", `{}`, nil, 404, `no model`},
		{"two models", "/v1/chat/completions", "own", `{"model":"model","model":"larger"}`, nil, 400, "twice"},
		{"no JSON", "/v1/chat/completions", "own", `model`, nil, 400, "JSON"},
		{"another protocol", "/v1beta/models/model:generateContent", "own", `{}`, nil, 404, "protocol"},
		{"in the background", "/v1/responses", "own", `{"model":"model","background":true}`, nil, 403, "background"},
		{"batches", "/v1/messages/batches", "own", ok, nil, 404, "has no POST"},
		{"web search, offline", "/v1/responses", "own", tool(`{"type":"web_search"}`), offline, 403, "web_search"},
		{"web fetch, offline", "/v1/messages", "own", tool(`{"type":"web_fetch_20250910","name":"web_fetch"}`), offline, 403, "web_fetch"},
		{"a hidden type, offline", "/v1/responses", "own", tool(`{"type":"function","type":"mcp"}`), offline, 403, "twice"},
		{"web search in a namespace, offline", "/v1/responses", "own", tool(`{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"},{"type":"web_search"}]}`), offline, 403, "web_search"},
		{"a namespace in a namespace", "/v1/responses", "own", tool(`{"type":"namespace","name":"n","tools":[{"type":"namespace","tools":[]}]}`), nil, 403, "another one in it"},
		{"a model in a namespace", "/v1/responses", "own", tool(`{"type":"namespace","name":"n","tools":[{"type":"image_generation","model":"dear"}]}`), nil, 403, "asks one of its own"},
		{"a namespace without tools", "/v1/responses", "own", tool(`{"type":"namespace","name":"n","tools":{}}`), nil, 403, "has no list of them"},
		{"a namespace of another protocol, offline", "/v1/messages", "own", tool(`{"type":"namespace","name":"n","tools":[]}`), offline, 403, "namespace"},
		{"servers, offline", "/v1/messages", "own", `{"model":"model","mcp_servers":[{"url":"http://x"}]}`, offline, 403, "mcp_servers"},
		{"search options, offline", "/v1/chat/completions", "own", `{"model":"model","web_search_options":{}}`, offline, 403, "web_search_options"},
		{"it was closed", "/v1/chat/completions", "own", ok, closed, 403, "the agent's time is over"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := open(t, setup{api: llm.Chat})
			if c.change != nil {
				w.Close()
				c.change(w.Gateway)
				if w.Offline {
					w.Open()
				}
			}
			key := c.key
			if key == "own" {
				key = w.Key
			}
			got := post(t, w.url+c.path, key, c.body)
			if got.status != c.status || !strings.Contains(got.body, c.says) || !json.Valid([]byte(got.body)) {
				t.Errorf("got %d %s, want %d and %q", got.status, got.body, c.status, c.says)
			}
			if n := len(w.provider.Requests()); n > 0 || w.Meter.Spent() != (llm.Spent{}) || w.Failure() != nil {
				t.Errorf("the provider was asked %d times, %+v spent, failure %v", n, w.Meter.Spent(), w.Failure())
			}
		})
	}
}

func TestOfflineLeavesTheCallersOwnTools(t *testing.T) {
	t.Parallel()
	for api, c := range map[llm.API][2]string{
		llm.Chat:      {"/v1/chat/completions", `{"type":"function","function":{"name":"f"}}`},
		llm.Responses: {"/v1/responses", `{"type":"function","name":"f"},{"type":"custom","name":"g"},{"type":"local_shell"},{"type":"namespace","name":"n","tools":[{"type":"function","name":"h"}]}`},
		llm.Anthropic: {"/v1/messages", `{"name":"f","input_schema":{}},{"type":"bash_20250124","name":"bash"},{"type":"custom","name":"g"}`},
		llm.Gemini:    {"/v1beta/models/model:generateContent", `{"functionDeclarations":[{"name":"f"}]}`},
	} {
		w := open(t, setup{api: api, change: func(g *gateway.Gateway) { g.Offline = true }})
		if got := post(t, w.url+c[0], w.Key, `{"model":"model","input":"Hi.","messages":[],"tools":[`+c[1]+`]}`); got.status != 200 {
			t.Errorf("%s: got %d %s", api, got.status, got.body)
		}
	}
}

func TestModelsAreListed(t *testing.T) {
	t.Parallel()
	w := open(t, setup{api: llm.Chat})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/v1/models?key="+w.Key, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var got struct {
		Data []struct{ ID string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || len(got.Data) != 1 || got.Data[0].ID != "model" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestBudget: calls beyond it reach no provider, and whoever runs the caller is told.
func TestBudget(t *testing.T) {
	t.Parallel()
	for _, f := range forms() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			w := open(t, setup{api: f.api, budget: llm.Budget{Tokens: 200}})
			for i, want := range []int{200, 200, 403, 403} { // 150 tokens each
				got := post(t, w.url+f.path, w.Key, f.body)
				if got.status != want || got.err != nil {
					t.Fatalf("call %d: got %+v", i+1, got)
				}
			}
			if n := len(w.provider.Requests()); n != 2 {
				t.Errorf("the provider was asked %d times", n)
			}
			if refused, ok := errors.AsType[*llm.BudgetError](<-w.stopped); !ok || refused.Spent.Tokens() != 300 {
				t.Errorf("stopped because of %v", refused)
			}
		})
	}
}

func TestFaultsReachTheCaller(t *testing.T) {
	t.Parallel()
	for _, f := range forms() {
		for fault, want := range map[llmtest.FaultKind]struct {
			kind  llm.Kind
			asked int
		}{
			llmtest.Auth: {llm.Auth, 1}, llmtest.Unknown: {llm.NotFound, 1}, llmtest.Context: {llm.ContextLength, 1},
			llmtest.RateLimit: {llm.RateLimited, 10}, llmtest.Quota: {llm.Quota, 1}, llmtest.Overload: {llm.Transient, 3},
		} {
			t.Run(f.name+" "+string(fault), func(t *testing.T) {
				t.Parallel()
				faulty := func(*llmtest.Request) llmtest.Turn {
					return llmtest.Turn{Fault: &llmtest.Fault{Kind: fault}}
				}
				w, twin := open(t, setup{api: f.api, answer: faulty}), open(t, setup{api: f.api, answer: faulty})
				direct := post(t, twin.direct+f.path, providerKey, f.body)
				got := post(t, w.url+f.path, w.Key, f.body)
				if got.status != direct.status || got.body != direct.body {
					t.Errorf("got %d %s, the provider says %d %s", got.status, got.body, direct.status, direct.body)
				}
				if n := len(w.provider.Requests()); n != want.asked {
					t.Errorf("the provider was asked %d times, want %d", n, want.asked)
				}
				if kind := llm.KindOf(w.Failure()); kind != want.kind || w.Answered() != 0 || w.Meter.Spent().Calls != 0 {
					t.Errorf("failure %v, %d answered, %+v spent", w.Failure(), w.Answered(), w.Meter.Spent())
				}
			})
		}
	}
}

func TestFaultIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := open(t, setup{api: llm.Anthropic, answer: func(r *llmtest.Request) llmtest.Turn {
		if r.Attempt < 2 {
			return llmtest.Turn{Fault: &llmtest.Fault{Kind: llmtest.RateLimit, RetryAfter: "1"}}
		}
		return llmtest.Turn{Text: "at last"}
	}})
	if got := post(t, w.url+"/v1/messages", w.Key, `{"model":"model","messages":[]}`); got.status != 200 || !strings.Contains(got.body, "at last") {
		t.Errorf("got %+v", got)
	}
	if w.Failure() != nil || w.Meter.Spent().Calls != 1 {
		t.Errorf("failure %v, spent %+v", w.Failure(), w.Meter.Spent())
	}
}

func TestProvidersKeyIsTakenOutOfWhatItSays(t *testing.T) {
	t.Parallel()
	w := open(t, setup{api: llm.Chat, answer: func(*llmtest.Request) llmtest.Turn {
		return llmtest.Turn{Fault: &llmtest.Fault{Kind: llmtest.Auth, Message: "Incorrect API key provided: " + providerKey}}
	}})
	got := post(t, w.url+"/v1/chat/completions", w.Key, `{"model":"model","messages":[]}`)
	if got.status != 401 || strings.Contains(got.body, providerKey) || !strings.Contains(got.body, "***") || strings.Contains(w.Failure().Error(), providerKey) {
		t.Errorf("got %+v, failure %v", got, w.Failure())
	}
}

func TestProviderThatIsNotThere(t *testing.T) {
	t.Parallel()
	w := open(t, setup{api: llm.Chat, change: func(g *gateway.Gateway) { g.Route.Base = "http://127.0.0.1:1/v1" }})
	got := post(t, w.url+"/v1/chat/completions", w.Key, `{"model":"model","messages":[]}`)
	if failure := w.Failure(); got.status != 502 || llm.KindOf(failure) != llm.Transient {
		t.Errorf("got %+v, failure %v", got, failure)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the key went elsewhere: %v", r.Header)
	}))
	t.Cleanup(elsewhere.Close)
	moved := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	t.Cleanup(moved.Close)
	w := open(t, setup{api: llm.Chat, change: func(g *gateway.Gateway) { g.Route.Base = moved.URL + "/v1" }})
	if got := post(t, w.url+"/v1/chat/completions", w.Key, `{"model":"model","messages":[]}`); got.status != 502 || got.header.Get("Location") != "" {
		t.Errorf("got %+v", got)
	}
}

// TestCutAnswerIsCut: a caller must not take half an answer for a whole one, and what came
// is counted.
func TestCutAnswerIsCut(t *testing.T) {
	t.Parallel()
	for _, f := range forms() {
		if !f.stream || f.name == "gemini list" { // which the server sends in one piece
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			w := open(t, setup{api: f.api, answer: func(*llmtest.Request) llmtest.Turn {
				return llmtest.Turn{Text: strings.Repeat("word ", 400), Fault: &llmtest.Fault{Kind: llmtest.Cut}}
			}})
			if got := post(t, w.url+f.path, w.Key, f.body); got.status != 200 || got.err == nil {
				t.Errorf("got status %d and error %v", got.status, got.err)
			}
			w.Close()
			if s := w.Meter.Spent(); s.Calls != 1 || s.Tokens() == 0 {
				t.Errorf("spent %+v", s)
			}
			if llm.KindOf(w.Failure()) != llm.Transient {
				t.Errorf("failure %v", w.Failure())
			}
		})
	}
}

func TestCloseEndsCallsUnderWay(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 2)
	w := open(t, setup{api: llm.Anthropic, answer: func(*llmtest.Request) llmtest.Turn {
		asked <- struct{}{}
		return llmtest.Turn{Fault: &llmtest.Fault{Kind: llmtest.Wait}}
	}})
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			if got := post(t, w.url+"/v1/messages", w.Key, `{"model":"model","messages":[{"role":"user","content":"a question"}]}`); got.err == nil {
				t.Errorf("got %+v", got)
			}
		})
	}
	<-asked
	<-asked
	w.Close()
	if s := w.Meter.Spent(); s.Calls != 2 || s.Uncounted != 2 || s.Prompt == 0 {
		t.Errorf("what was asked is not counted: %+v", s)
	}
	calls.Wait()
	if got := post(t, w.url+"/v1/messages", w.Key, `{"model":"model","messages":[]}`); got.status != 403 {
		t.Errorf("after Close: got %+v", got)
	}
	if w.Failure() != nil {
		t.Errorf("failure %v", w.Failure())
	}
}

func TestCostIsThatOfThePrices(t *testing.T) {
	t.Parallel()
	w := open(t, setup{api: llm.Anthropic, prices: &llm.Prices{Input: 0.5, Output: 2}})
	post(t, w.url+"/v1/messages", w.Key, `{"model":"model","messages":[]}`)
	if s := w.Meter.Spent(); s.USD != 120*0.5+30*2 || s.Unpriced != 0 {
		t.Errorf("spent %+v", s)
	}
}

func TestRecordedCallsAreReplayed(t *testing.T) {
	t.Parallel()
	for _, f := range forms() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			var file bytes.Buffer
			w := open(t, setup{api: f.api, change: func(g *gateway.Gateway) { g.Recorder = &llm.Recorder{To: &file} }})
			first := post(t, w.url+f.path, w.Key, f.body)
			w.provider.Answer = func(*llmtest.Request) llmtest.Turn { return llmtest.Turn{Fault: &llmtest.Fault{Kind: llmtest.Context}} }
			second := post(t, w.url+f.path, w.Key, f.body)
			w.Close()
			if strings.Contains(file.String(), providerKey) {
				t.Error("the recording has the key")
			}
			recording, err := llm.ParseRecording(file.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			again := open(t, setup{api: f.api, change: func(g *gateway.Gateway) {
				g.Route, g.Replay = nil, &llm.Replay{Recording: recording, Name: "it", Strict: true}
			}})
			for i, want := range []answer{first, second} {
				if got := post(t, again.url+f.path, again.Key, f.body); got.status != want.status || got.body != want.body || got.err != nil {
					t.Errorf("call %d: got %+v, recorded was %+v", i+1, got, want)
				}
			}
			if a, b := w.Meter.Spent(), again.Meter.Spent(); a != b {
				t.Errorf("recorded %+v, replayed %+v", a, b)
			}
			if a, b := w.Failure(), again.Failure(); llm.KindOf(a) != llm.ContextLength || a.Error() != b.Error() {
				t.Errorf("recorded %v, replayed %v", a, b)
			}
			if got := post(t, again.url+f.path, again.Key, f.body); got.status != 403 || <-again.stopped == nil {
				t.Errorf("beyond the recording: got %+v", got)
			}
		})
	}
}

func TestManyCallsAtOnce(t *testing.T) {
	t.Parallel()
	const callers, each = 16, 10
	var file bytes.Buffer
	w := open(t, setup{api: llm.Responses, change: func(g *gateway.Gateway) { g.Recorder = &llm.Recorder{To: &file} }})
	var calls sync.WaitGroup
	for range callers {
		calls.Go(func() {
			for range each {
				if got := post(t, w.url+"/v1/responses", w.Key, `{"model":"model","input":"Hi.","stream":true}`); got.status != 200 || got.err != nil {
					t.Errorf("got %+v", got)
				}
			}
		})
	}
	calls.Wait()
	w.Close()
	if s := w.Meter.Spent(); s.Calls != callers*each || s.Prompt != 120*callers*each || w.Answered() != callers*each {
		t.Errorf("spent %+v, answered %d", s, w.Answered())
	}
	if _, err := llm.ParseRecording(file.Bytes()); err != nil {
		t.Error(err)
	}
}
