package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/gateway"
	"github.com/proctor-run/proctor/llm/llmtest"
)

// conversation is the body of a request as long as those of agents get: about n bytes of
// messages and results of tools.
func conversation(n int) string {
	var b strings.Builder
	b.WriteString(`{"model":"model","stream":false,"tools":[`)
	for i := range 20 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"type":"function","function":{"name":"tool_%d","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}}`, i)
	}
	b.WriteString(`],"messages":[{"role":"user","content":"Hi."}`)
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `,{"role":"assistant","tool_calls":[{"id":"c%d","type":"function","function":{"name":"tool_1","arguments":"{\"path\":\"a.go\"}"}}]}`, i)
		fmt.Fprintf(&b, `,{"role":"tool","tool_call_id":"c%d","content":"%s"}`, i, strings.Repeat(`if err != nil {\n\treturn \"wrapped\", err\n}\n`, 40))
	}
	b.WriteString(`]}`)
	return b.String()
}

// BenchmarkCall tells how long calls take through the gateway, and how many times as long as
// those that are made directly to a provider that answers at once.
func BenchmarkCall(b *testing.B) {
	long := conversation(300 << 10)
	for _, c := range []struct {
		name       string
		api        llm.API
		path, body string
		turn       llmtest.Turn
		offline    bool
	}{
		{"small", llm.Chat, "/v1/chat/completions", `{"model":"model","messages":[]}`, llmtest.Turn{Text: "hello"}, false},
		{"300KB", llm.Chat, "/v1/chat/completions", long, llmtest.Turn{Text: "hello"}, false},
		{"300KB-offline", llm.Chat, "/v1/chat/completions", long, llmtest.Turn{Text: "hello"}, true},
		// Four events, four of the text and three of each call.
		{"stream", llm.Anthropic, "/v1/messages", `{"model":"model","stream":true,"messages":[]}`, llmtest.Turn{Text: "hello", Calls: make([]llm.ToolCall, 64)}, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := open(b, setup{api: c.api, answer: func(*llmtest.Request) llmtest.Turn { return c.turn }, change: func(g *gateway.Gateway) {
				g.Offline = c.offline
			}})
			w.provider.Forget = true
			ask := func(url, key string) time.Duration {
				began := time.Now()
				r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url+c.path, strings.NewReader(c.body))
				if err != nil {
					b.Fatal(err)
				}
				r.Header.Set("Authorization", "Bearer "+key)
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					b.Fatal(err)
				}
				_, err = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if err != nil || resp.StatusCode != http.StatusOK {
					b.Fatal(resp.Status, err)
				}
				return time.Since(began)
			}
			var through, direct []time.Duration
			for b.Loop() { // by turns, so that both find the machine as busy
				direct = append(direct, ask(w.direct, providerKey))
				through = append(through, ask(w.url, w.Key))
			}
			slices.Sort(through)
			slices.Sort(direct)
			p50, base := through[len(through)/2], direct[len(direct)/2]
			b.ReportMetric(float64(p50.Microseconds()), "p50-µs")
			b.ReportMetric(float64(base.Microseconds()), "direct-µs")
			b.ReportMetric(float64(p50)/float64(base), "ratio")
		})
	}
}

// still is a provider that is not there: it answers at once.
type still struct{}

func (still) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(wellDone)),
	}, nil
}

// BenchmarkOverhead is what the gateway itself does for a call, without any connection.
func BenchmarkOverhead(b *testing.B) {
	for name, body := range map[string]string{"small": plain, "300KB": conversation(300 << 10)} {
		for _, offline := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/offline=%v", name, offline), func(b *testing.B) {
				w := open(b, setup{api: llm.Chat, change: func(g *gateway.Gateway) {
					g.Offline = offline
					g.Route.HTTP = &http.Client{Transport: still{}}
				}})
				b.ReportAllocs()
				for b.Loop() {
					r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
					r.Header.Set("Authorization", "Bearer "+w.Key)
					answer := httptest.NewRecorder()
					if w.ServeHTTP(answer, r); answer.Code != http.StatusOK {
						b.Fatal(answer.Code, answer.Body)
					}
				}
			})
		}
	}
}
