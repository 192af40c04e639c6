package gateway_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/gateway"
)

// watched is the way to a provider that must be asked for one model alone, at most once.
type watched struct {
	t           *testing.T
	key         string // of the gateway
	answer      string
	contentType string
	asked       int
}

func (p *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	p.asked++
	targets := []string{
		"/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/messages?beta=true", "/v1/messages/count_tokens", "/v1/messages/count_tokens?beta=true",
	}
	gemini := "/v1/v1beta/models/model:" // Gemini has a version of its own
	for _, verb := range []string{"generateContent", "streamGenerateContent", "countTokens"} {
		targets = append(targets, gemini+verb, gemini+verb+"?alt=sse")
	}
	body, err := io.ReadAll(r.Body)
	if r.Method != http.MethodPost || r.URL.Host != "provider.example" || !slices.Contains(targets, r.URL.RequestURI()) || err != nil {
		p.t.Errorf("the provider was asked for %s %s, %v", r.Method, r.URL, err)
	}
	if !strings.HasPrefix(r.URL.Path, gemini) {
		var asked map[string]any
		if err := json.Unmarshal(body, &asked); err != nil || asked["model"] != "model" || asked["models"] != nil {
			p.t.Errorf("the provider was asked %q, %v", body, err)
		}
	}
	key := r.Header.Get("X-Api-Key") + r.Header.Get("X-Goog-Api-Key") + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if key != providerKey || r.Header.Get("Content-Type") != "application/json" || strings.Contains(fmt.Sprint(r.Header), p.key) {
		p.t.Errorf("the provider was asked with %v", r.Header)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1, Request: r,
		Header: http.Header{"Content-Type": {p.contentType}}, Body: io.NopCloser(strings.NewReader(p.answer)),
	}, nil
}

// FuzzServe: whatever a caller sends, the provider is asked for the one model or not at all,
// nothing that it is asked goes uncounted, and the gateway does not fail.
func FuzzServe(f *testing.F) {
	for i, c := range forms() {
		f.Add(http.MethodPost, c.path, "Accept: */*", c.body, wellDone, "application/json", i%2 == 0)
	}
	f.Add("GET", "/v1/models", "Anthropic-Version: 1", "", "", "", true)
	f.Add("POST", "/v1/models/model:countTokens?key=a&alt=sse&alt=json", "Content-Encoding: gzip\nX-Goog-Api-Key: a", `{"generateContentRequest":{"model":"x"}}`, "[", "text/event-stream", true)
	f.Add("POST", "http://x/v1/chat/completions/../messages", "Transfer-Encoding: chunked\nExpect: 100-continue", `{"model":"test/model","tools":[{"type":"web_search"}],"models":["a"]}`, "data: {}\n\n", "x", true)
	f.Add("POST", "/v1/messages/count_tokens?beta=true", "Anthropic-Beta: a\nAnthropic-Beta: b", `{"model":"model","m\u006fdel":"a","messages":[{"source":{"type":"url"}}]}`, providerKey, "", true)
	f.Fuzz(func(t *testing.T, method, target, headers, body, answer, contentType string, offline bool) {
		key := gateway.NewKey()
		head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer %s\r\n%s\r\n\r\n", method, target, key, strings.ReplaceAll(headers, "\n", "\r\n"))
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(head)))
		if err != nil {
			return // the server does not let it through
		}
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		p := &watched{t: t, key: key, answer: answer, contentType: contentType}
		client := &llm.Client{HTTP: &http.Client{Transport: p}}
		route, err := client.Route("test/model", llm.Options{Base: "http://provider.example/v1", API: llm.Chat, Env: []string{"TEST_API_KEY=" + providerKey}})
		if err != nil {
			t.Fatal(err)
		}
		g := &gateway.Gateway{
			Model: "test/model", Key: key, Route: route, Protocols: []llm.API{llm.Chat, llm.Responses, llm.Anthropic, llm.Gemini},
			Meter: llm.NewMeter(llm.OfTrial, llm.Budget{}, nil), Offline: offline,
		}
		g.Open()
		defer g.Close()
		w := httptest.NewRecorder()
		aborted := serve(t, g, w, r)
		spent := g.Meter.Spent()
		counts := strings.Contains(r.URL.Path, "ount") // counting costs nothing
		if p.asked > 1 || spent.Calls > int64(p.asked) || !counts && spent.Calls != int64(p.asked) {
			t.Errorf("%d calls are counted, %d were made", spent.Calls, p.asked)
		}
		if !aborted && p.asked == 0 && !json.Valid(w.Body.Bytes()) {
			t.Errorf("the caller is told %q", w.Body)
		}
		if strings.Contains(w.Body.String()+fmt.Sprint(w.Header()), providerKey) && !strings.Contains(method+target+headers+body, providerKey) {
			t.Errorf("the caller is told the key: %v %q", w.Header(), w.Body)
		}
		if !g.Hold(gateway.MaxHeld) {
			t.Error("what the call held is not given back")
		}
	})
}

// serve answers a request; aborted tells that the connection was ended in the way that servers
// expect.
func serve(t *testing.T, h http.Handler, w http.ResponseWriter, r *http.Request) (aborted bool) {
	defer func() {
		if v := recover(); v != nil {
			err, ok := v.(error)
			if aborted = ok && errors.Is(err, http.ErrAbortHandler); !aborted {
				t.Errorf("panic: %v", v)
			}
		}
	}()
	h.ServeHTTP(w, r)
	return false
}
