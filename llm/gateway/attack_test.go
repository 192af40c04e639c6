package gateway_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/gateway"
	"github.com/proctor-run/proctor/llm/llmtest"
)

// spy is a provider that notes what it is asked.
type spy struct {
	mu    sync.Mutex
	asked []seen
}

type seen struct {
	method, target, body string
	header               http.Header
}

func (s *spy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.asked = append(s.asked, seen{r.Method, r.RequestURI, string(body), r.Header})
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
}

func (s *spy) all() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// spied is a gateway whose provider is a spy.
func spied(t *testing.T, api llm.API, change func(*gateway.Gateway)) (*world, *spy) {
	t.Helper()
	s := &spy{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return open(t, setup{api: api, change: func(g *gateway.Gateway) {
		g.Route.Base = server.URL
		if api == llm.Chat || api == llm.Responses {
			g.Route.Base += "/v1"
		}
		if change != nil {
			change(g)
		}
	}}), s
}

// raw sends bytes to the gateway and reads the answer.
func raw(t *testing.T, w *world, request string) answer {
	t.Helper()
	conn := dial(t, w)
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	return read(conn)
}

func dial(t *testing.T, w *world) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func read(conn io.Reader) answer {
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(data), err}
}

func request(w *world, target, headers, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n%s\r\n%s",
		target, w.Key, len(body), headers, body)
}

const plain = `{"model":"model","messages":[]}`

// TestTargetsLeadNowhereElse: whatever is made of a target, the provider is asked for the one
// model at the path of the protocol, or not at all.
func TestTargetsLeadNowhereElse(t *testing.T) {
	t.Parallel()
	chat, gemini := []string{
		"/v1/chat/completions", "/v1/embeddings/../chat/completions", "/v1/chat/completions/../embeddings", "/v1/chat%2Fcompletions",
		"/v1/files/%2e%2e/chat/completions", "http://elsewhere.example/v1/chat/completions", "//elsewhere.example/chat/completions",
		"/v1/chat/completions?model=larger&key=x&fields=choices&api-version=1", "/v1/chat/completions;x=y", "/v1/chat/completions%00",
		"/v1/chat/completions/", "/v1/chat/completions%3Fx", "/v1/models/larger/chat/completions", "/chat/completions\\..\\files",
	}, []string{
		"/v1beta/models/model:generateContent", "/v1beta/models/models/model:generateContent", "/v1beta/models/test/model:generateContent",
		"/v1beta/models/model:generateContent?alt=proto&fields=candidates&$fields=x&access_token=y&callback=z", "/v1beta/models/model:generateContent?alt=sse&alt=proto",
		"/v1beta/models/larger:generateContent", "/v1beta/models/..%2Fmodel:generateContent", "/v1beta/models/model:generateContent/../../models/larger:generateContent",
		"/v1beta/models/larger%3AgenerateContent%2F..%2Fmodel:generateContent", "/v1beta/models/larger:generateContent:generateContent",
		"/v1beta/models/model%3Fx:generateContent", "/v1beta/models/model:generateContent%2F..%2Fx", "/v1beta/models/model:batchGenerateContent",
		"/v1beta/models/model/:generateContent", "/v1beta/tunedModels/model:generateContent", "/v1beta/models/:generateContent",
	}
	for api, targets := range map[llm.API][]string{llm.Chat: chat, llm.Gemini: gemini} {
		known := []string{"/v1/chat/completions"}
		if api == llm.Gemini {
			known = []string{"/v1beta/models/model:generateContent", "/v1beta/models/model:generateContent?alt=sse"}
		}
		for _, target := range targets {
			t.Run(string(api)+" "+target, func(t *testing.T) {
				t.Parallel()
				w, s := spied(t, api, nil)
				got := raw(t, w, request(w, target, "X-Http-Method-Override: DELETE\r\nOpenai-Organization: other\r\n", plain))
				asked := s.all()
				if got.err != nil || len(asked) > 1 || (got.status == 200) != (len(asked) == 1) || got.status != 200 && got.status/100 != 4 {
					t.Fatalf("got %+v, asked %v", got, asked)
				}
				for _, a := range asked {
					if !slices.Contains(known, a.target) || a.method != "POST" || a.body != plain ||
						a.header.Get("Openai-Organization")+a.header.Get("X-Http-Method-Override") != "" || strings.Contains(fmt.Sprint(a), w.Key) {
						t.Errorf("the provider was asked %+v", a)
					}
				}
				if calls := w.Meter.Spent().Calls; calls != int64(len(asked)) {
					t.Errorf("%d calls are counted, %d were made", calls, len(asked))
				}
			})
		}
	}
}

func compressed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestBodiesAreReadInOneWay: what a provider might read as another request is refused, or made
// what it was read as.
func TestBodiesAreReadInOneWay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, headers, body string
		status              int
	}{
		{"gzip", "Content-Encoding: gzip\r\n", compressed(t, plain), 415},
		{"said to be gzip", "Content-Encoding: gzip\r\n", plain, 415},
		{"gzip in a second header", "Content-Encoding: identity\r\nContent-Encoding: gzip\r\n", plain, 415},
		{"gzip that is not said to be", "", compressed(t, plain), 400},
		{"another charset", "Content-Type: application/json; charset=utf-7\r\n", plain, 200},
		{"a form", "Content-Type: application/x-www-form-urlencoded\r\nAccept: application/x-protobuf\r\n", plain, 200},
		{"a byte order mark", "", "\ufeff" + plain, 400},
		{"UTF-16", "", "{\x00\"\x00m\x00", 400},
		{"JSON after JSON", "", plain + `{"model":"larger"}`, 400},
		{"lines of JSON", "", plain + "\n" + `{"model":"larger"}`, 400},
		{"the model twice", "", `{"model":"larger","mod\u0065l":"model"}`, 400},
		{"the model in capitals", "", `{"model":"model","MODEL":"larger"}`, 400},
		{"the model with a long s", "", `{"model":"model","\u017ftream":true}`, 400},
		{"a name that ends early", "", `{"model":"model","model\u0000x":"larger"}`, 400},
		{"a name with a byte that is none", "", "{\"model\":\"model\",\"model\xff\":\"larger\"}", 400},
		{"models by turns", "", `{"model":"model","models":["model","larger"]}`, 403},
		{"another model after a failure", "", `{"model":"model","f\u0061llbacks":["larger"]}`, 403},
		{"a preset", "", `{"model":"model","preset":"larger"}`, 403},
		{"another address", "", `{"model":"model","api_base":"http://elsewhere.example"}`, 403},
		{"a tool with a model", "", `{"model":"model","tools":[{"type":"advisor_20260301","model":"larger"}]}`, 403},
		{"tools that are no list", "", `{"model":"model","tools":{"type":"advisor","model":"larger"}}`, 403},
		{"a list of models", "", `{"model":["model","larger"]}`, 400},
		{"no object", "", `["model"]`, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, s := spied(t, llm.Chat, nil)
			got := raw(t, w, request(w, "/v1/chat/completions", c.headers, c.body))
			asked := s.all()
			if got.status != c.status || (c.status == 200) != (len(asked) == 1) || w.Meter.Spent().Calls != int64(len(asked)) {
				t.Fatalf("got %+v, asked %v", got, asked)
			}
			for _, a := range asked {
				if a.header.Get("Content-Type") != "application/json" || a.header.Get("Accept") != "" || a.header.Get("Content-Encoding") != "" {
					t.Errorf("the provider was asked with %v", a.header)
				}
			}
		})
	}
}

func TestGeminiHasNoModelInTheBody(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, body string
		status       int
	}{
		{"generateContent", `{"model":"models/larger","contents":[]}`, 404},
		{"generateContent", `{"model":"models/model","contents":[]}`, 200},
		{"countTokens", `{"generateContentRequest":{"model":"models/larger"}}`, 403},
		{"countTokens", `{"generate_content_request":{"model":"models/larger"}}`, 403},
		{"countTokens", `{"generateContentRequest":{"model":"models/model","contents":[]}}`, 200},
		{"countTokens", `{"contents":[]}`, 200},
		{"countTokens", `contents`, 400},
	} {
		w, s := spied(t, llm.Gemini, nil)
		if got := post(t, w.url+"/v1beta/models/model:"+c.method, w.Key, c.body); got.status != c.status || (c.status == 200) != (len(s.all()) == 1) {
			t.Errorf("%s %s: got %d %s", c.method, c.body, got.status, got.body)
		}
	}
}

// TestFramesOfRequests: how a request is framed makes no second one of it.
func TestFramesOfRequests(t *testing.T) {
	t.Parallel()
	const head = "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nX-Api-Key: "
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n", len(plain), plain)
	for _, c := range []struct {
		name          string
		request       func(w *world) string
		status, asked int
	}{
		{"chunks", func(w *world) string {
			return head + w.Key + "\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked + "\r\n"
		}, 200, 1},
		{"trailers", func(w *world) string {
			return head + w.Key + "\r\nTransfer-Encoding: chunked\r\nTrailer: Openai-Beta, Content-Encoding\r\n\r\n" + chunked + "Openai-Beta: x\r\nContent-Encoding: gzip\r\n\r\n"
		}, 200, 1},
		{"two lengths", func(w *world) string {
			return head + w.Key + "\r\nContent-Length: 5\r\nContent-Length: 31\r\n\r\n" + plain
		}, 400, 0},
		{"a length and chunks", func(w *world) string {
			return head + w.Key + "\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + chunked + "\r\n"
		}, 200, 1},
		{"an expectation", func(w *world) string { return head + w.Key + "\r\nExpect: more\r\nContent-Length: 31\r\n\r\n" + plain }, 417, 0},
		{"an upgrade", func(w *world) string {
			return head + w.Key + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 31\r\n\r\n" + plain
		}, 200, 1},
		{"HTTP/1.0", func(w *world) string {
			return strings.Replace(head, "HTTP/1.1", "HTTP/1.0", 1) + w.Key + "\r\nContent-Length: 31\r\n\r\n" + plain
		}, 200, 1},
		{"no length", func(w *world) string { return head + w.Key + "\r\n\r\n" + plain }, 400, 0},
		{"too long", func(w *world) string { return head + w.Key + "\r\nContent-Length: 67108865\r\n\r\n" }, 413, 0},
		{"another key first", func(w *world) string {
			return head + "x\r\nX-Api-Key: " + w.Key + "\r\nContent-Length: 31\r\n\r\n" + plain
		}, 401, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, s := spied(t, llm.Chat, nil)
			got := raw(t, w, c.request(w))
			w.Close() // with HTTP/1.0 the caller sees the end before the call is counted
			asked := s.all()
			if got.status != c.status || len(asked) != c.asked || w.Meter.Spent().Calls != int64(c.asked) {
				t.Fatalf("got %+v, asked %v", got, asked)
			}
			for _, a := range asked {
				if a.body != plain || a.header.Get("Upgrade")+a.header.Get("Trailer")+a.header.Get("Openai-Beta") != "" {
					t.Errorf("the provider was asked %+v", a)
				}
			}
		})
	}
}

// TestPipelinedCallsAreCountedEach: the second request is there before the first is answered.
func TestPipelinedCallsAreCountedEach(t *testing.T) {
	t.Parallel()
	w, s := spied(t, llm.Chat, nil)
	one := strings.Replace(request(w, "/v1/chat/completions", "", plain), "Connection: close\r\n", "", 1)
	conn := dial(t, w)
	if _, err := io.WriteString(conn, one+request(w, "/v1/chat/completions", "", plain)); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(conn)
	if err != nil || strings.Count(string(all), "HTTP/1.1 200 OK") != 2 || len(s.all()) != 2 || w.Meter.Spent().Calls != 2 {
		t.Errorf("got %s, %v; %+v spent", all, err, w.Meter.Spent())
	}
}

// TestOtherPricesNeedNoBudget: what costs more than is known is refused where that matters.
func TestOtherPricesNeedNoBudget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		member string
		budget int64
		status int
	}{
		{`"service_tier":"priority"`, 0, 200}, {`"service_tier":"priority"`, 100, 403}, {`"speed":"fast"`, 100, 403},
		{`"service_tier":"auto"`, 100, 200}, {`"service_tier":null,"speed":"standard"`, 100, 200},
	} {
		w := open(t, setup{api: llm.Responses, budget: llm.Budget{Tokens: c.budget}})
		if got := post(t, w.url+"/v1/responses", w.Key, `{"model":"model","input":"Hi.",`+c.member+`}`); got.status != c.status {
			t.Errorf("%s with a budget of %d: got %d %s", c.member, c.budget, got.status, got.body)
		}
	}
}

// TestBudgetIsAskedBeforeEachAttempt: a call that waited for its turn, or is made again, finds
// what others have used meanwhile.
func TestBudgetIsAskedBeforeEachAttempt(t *testing.T) {
	t.Parallel()
	var w *world
	w = open(t, setup{api: llm.Chat, budget: llm.Budget{Tokens: 100}, answer: func(*llmtest.Request) llmtest.Turn {
		w.Meter.Add(llm.Spent{Prompt: 100})
		return llmtest.Turn{Fault: &llmtest.Fault{Kind: llmtest.RateLimit}}
	}})
	if got := post(t, w.url+"/v1/chat/completions", w.Key, plain); got.status != 403 || len(w.provider.Requests()) != 1 || <-w.stopped == nil {
		t.Errorf("got %+v after %d requests", got, len(w.provider.Requests()))
	}
}

// TestLeavingDoesNotMakeAnAnswerFree: what a model thought is told at the end alone. A caller
// who has read the answer and leaves before that pays for it as any other.
func TestLeavingDoesNotMakeAnAnswerFree(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"42"},"finish_reason":"stop"}]}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		<-left
		_, _ = io.WriteString(w, `data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":50000}}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	w := open(t, setup{api: llm.Chat, budget: llm.Budget{Tokens: 50000}, change: func(g *gateway.Gateway) { g.Route.Base = server.URL + "/v1" }})
	conn := dial(t, w)
	if _, err := io.WriteString(conn, request(w, "/v1/chat/completions", "", `{"model":"model","stream":true,"messages":[]}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil { //nolint:bodyclose // it is left open
		t.Fatal(err)
	}
	_ = conn.Close()
	close(left)
	<-w.Meter.UsedUp()
	if s := w.Meter.Spent(); s.Calls != 1 || s.Completion != 50000 || s.Uncounted != 0 {
		t.Errorf("spent %+v", s)
	}
}

// TestAnswersAreNotReadOnForLong: a provider that does not end a call whose caller has gone
// does not keep its place.
func TestAnswersAreNotReadOnForLong(t *testing.T) {
	t.Parallel()
	asked, ended := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(asked)
		<-r.Context().Done()
		close(ended)
	}))
	t.Cleanup(server.Close)
	w := open(t, setup{api: llm.Chat, budget: llm.Budget{Tokens: 1}, change: func(g *gateway.Gateway) {
		g.Route.Base = server.URL + "/v1"
		g.Bound(0, time.Millisecond, 0)
	}})
	conn := dial(t, w)
	if _, err := io.WriteString(conn, request(w, "/v1/chat/completions", "", plain)); err != nil {
		t.Fatal(err)
	}
	<-asked
	_ = conn.Close()
	<-ended
	<-w.Meter.UsedUp()
	if s := w.Meter.Spent(); s.Calls != 1 || s.Prompt != int64(len(plain)/4) || s.Uncounted != 1 || w.Failure() != nil {
		t.Errorf("spent %+v, failure %v", s, w.Failure())
	}
}

// TestCallersWhoTakeNothingLoseTheirPlace: other callers of the model may wait for it.
func TestCallersWhoTakeNothingLoseTheirPlace(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		endless("", "data: {}\n\n")(w)
	}))
	t.Cleanup(server.Close)
	w := open(t, setup{api: llm.Chat, budget: llm.Budget{Tokens: 1}, change: func(g *gateway.Gateway) {
		g.Route.Base = server.URL + "/v1"
		g.Bound(0, time.Millisecond, time.Millisecond)
	}})
	if _, err := io.WriteString(dial(t, w), request(w, "/v1/chat/completions", "", plain)); err != nil {
		t.Fatal(err)
	}
	<-ended
	<-w.Meter.UsedUp()
	if s := w.Meter.Spent(); s.Calls != 1 || w.Failure() != nil {
		t.Errorf("spent %+v, failure %v", s, w.Failure())
	}
}

// TestCloseWaitsForNoCaller: neither for one who does not send, nor for one who does not read.
func TestCloseWaitsForNoCaller(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		piece := []byte("data: {}\n\n" + strings.Repeat(":", 64<<10) + "\n\n")
		w.Header().Set("Content-Type", "text/event-stream")
		for n := 0; r.Context().Err() == nil; n++ {
			if _, err := w.Write(piece); err != nil {
				return
			}
			if n == 0 {
				close(began)
			}
		}
	}))
	t.Cleanup(server.Close)
	w := open(t, setup{api: llm.Chat, change: func(g *gateway.Gateway) { g.Route.Base = server.URL + "/v1" }})
	sender, reader := dial(t, w), dial(t, w)
	if _, err := io.WriteString(sender, strings.TrimSuffix(request(w, "/v1/chat/completions", "Expect: 100-continue\r\n", plain), plain)); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(sender).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatal(line, err) // the gateway reads the body from now on
	}
	if _, err := io.WriteString(reader, request(w, "/v1/chat/completions", "", plain)); err != nil {
		t.Fatal(err)
	}
	<-began
	closed := make(chan struct{})
	go func() {
		w.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Fatal("it is waiting")
	}
	if s := w.Meter.Spent(); s.Calls != 1 {
		t.Errorf("spent %+v", s)
	}
	if w.Failure() != nil {
		t.Errorf("the agent's end is taken for a failure of the model: %v", w.Failure())
	}
}

// TestCallsAtOnceAreBounded: how far calls can go beyond a budget together, too.
func TestCallsAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	const callers = gateway.MaxCalls + 20
	var under, most, asked atomic.Int64
	full, once := make(chan struct{}), sync.Once{}
	w := open(t, setup{api: llm.Chat, budget: llm.Budget{Tokens: 150}, answer: func(*llmtest.Request) llmtest.Turn {
		n := under.Add(1)
		most.Store(max(most.Load(), n))
		if asked.Add(1) == gateway.MaxCalls {
			once.Do(func() { close(full) })
		}
		<-full
		under.Add(-1)
		return say("hello")(nil)
	}})
	var calls sync.WaitGroup
	var refused atomic.Int64
	for range callers {
		calls.Go(func() {
			if got := post(t, w.url+"/v1/chat/completions", w.Key, plain); got.status == 403 {
				refused.Add(1)
			}
		})
	}
	calls.Wait()
	if most.Load() > gateway.MaxCalls || asked.Load()+refused.Load() != callers || w.Meter.Spent().Calls != asked.Load() || refused.Load() == 0 {
		t.Errorf("%d at once, %d asked, %d refused, %+v spent", most.Load(), asked.Load(), refused.Load(), w.Meter.Spent())
	}
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	w := open(t, setup{api: llm.Anthropic})
	if !w.Hold(gateway.MaxHeld - 2*int64(len(plain))) {
		t.Fatal("there is none")
	}
	if got := post(t, w.url+"/v1/messages", w.Key, plain); got.status != 503 || len(w.provider.Requests()) != 0 {
		t.Errorf("got %+v", got)
	}
	w.Hold(-gateway.MaxHeld + 2*int64(len(plain)))
	if got := post(t, w.url+"/v1/messages", w.Key, plain); got.status != 200 {
		t.Errorf("got %+v", got)
	}
	w.Close()
	if !w.Hold(gateway.MaxHeld) {
		t.Error("what calls held is not given back")
	}
}
