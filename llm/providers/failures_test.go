package providers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name  string
		fault llmtest.Fault
		kind  llm.Kind
		wait  time.Duration
	}{
		{"overload", llmtest.Fault{Kind: llmtest.Overload}, llm.Transient, 0},
		{"rate", llmtest.Fault{Kind: llmtest.RateLimit, RetryAfter: "7"}, llm.RateLimited, 7 * time.Second},
		{"rate fraction", llmtest.Fault{Kind: llmtest.RateLimit, RetryAfter: "0.5"}, llm.RateLimited, 500 * time.Millisecond},
		{"rate date", llmtest.Fault{Kind: llmtest.RateLimit, RetryAfter: "Sun, 01 Mar 2026 12:00:30 GMT"}, llm.RateLimited, 30 * time.Second},
		{"rate past", llmtest.Fault{Kind: llmtest.RateLimit, RetryAfter: "Sun, 01 Mar 2026 11:00:30 GMT"}, llm.RateLimited, 0},
		{"rate nonsense", llmtest.Fault{Kind: llmtest.RateLimit, RetryAfter: "-1 NaN"}, llm.RateLimited, 0},
		{"rate for ever", llmtest.Fault{Kind: llmtest.RateLimit, RetryAfter: "1e300"}, llm.RateLimited, 24 * time.Hour},
		{"quota", llmtest.Fault{Kind: llmtest.Quota}, llm.Quota, 0},
		{"auth", llmtest.Fault{Kind: llmtest.Auth}, llm.Auth, 0},
		{"forbidden", llmtest.Fault{Status: 403}, llm.Auth, 0},
		{"payment", llmtest.Fault{Status: 402}, llm.Quota, 0},
		{"unknown", llmtest.Fault{Kind: llmtest.Unknown}, llm.NotFound, 0},
		{"context", llmtest.Fault{Kind: llmtest.Context}, llm.ContextLength, 0},
		{"too large", llmtest.Fault{Status: 413}, llm.ContextLength, 0},
		{"refused", llmtest.Fault{Kind: llmtest.Refused}, llm.Refused, 0},
		{"malformed", llmtest.Fault{Kind: llmtest.Malformed}, llm.Transient, 0},
		{"empty", llmtest.Fault{Kind: llmtest.Empty}, llm.Transient, 0},
		{"cut", llmtest.Fault{Kind: llmtest.Cut}, llm.Transient, 0},
		{"bad", llmtest.Fault{Status: 400, Message: "messages: wrong"}, llm.BadRequest, 0},
		{"408", llmtest.Fault{Status: 408}, llm.Transient, 0},
		{"409", llmtest.Fault{Status: 409}, llm.Transient, 0},
		{"500", llmtest.Fault{Status: 500}, llm.Transient, 0},
		{"503 with a wait", llmtest.Fault{Status: 503, RetryAfter: "3"}, llm.Transient, 3 * time.Second},
		{"529", llmtest.Fault{Status: 529}, llm.Transient, 0},
		{"redirect", llmtest.Fault{Status: 307}, llm.BadRequest, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			eachAPI(t, func(t *testing.T, api llm.API) {
				fault := c.fault
				s := &llmtest.Server{Answer: always(llmtest.Turn{Text: "a text that is cut", Fault: &fault})}
				m := dial(t, api, serve(t, s), func(e *llm.Endpoint) { e.Now = func() time.Time { return now } })
				got, err := m.Complete(t.Context(), ask("x"))
				var e *llm.Error
				if got != nil || !errors.As(err, &e) {
					t.Fatalf("%+v, %v", got, err)
				}
				if e.Kind != c.kind || e.RetryAfter != c.wait || e.Model != "fake/model-x" || e.Message == "" {
					t.Errorf("%+v", e)
				}
				if n := len(s.Requests()); n != 1 {
					t.Errorf("%d requests", n)
				}
				if count := s.Counts()[llmtest.Account{Model: "model-x", Key: key}]; count.Answers != 0 || count.Usage != (llm.Usage{}) {
					t.Errorf("count = %+v", count)
				}
			})
		})
	}
}

// What servers say in other forms, and what is in a message that is shown.
func TestForeignErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body string
		status     int
		kind       llm.Kind
		message    string
	}{
		{"text", "upstream is gone", 502, llm.Transient, "upstream is gone"},
		{"nothing", "", 502, llm.Transient, "the server said no more: Bad Gateway"},
		{"key in it", `{"error":{"message":"bad key ` + key + ` or sk-secret%2F9f8e7d%2Bkey"}}`, 401, llm.Auth, "bad key *** or ***"},
		{"no envelope", `{"object":"error","message":"This model's maximum context length is 10","code":400}`, 400, llm.ContextLength, "This model's maximum context length is 10"},
		{"text error", `{"error":"model 'x' not found"}`, 404, llm.NotFound, "model 'x' not found"},
		{"list", `[{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"12s"}]}}]`, 429, llm.RateLimited, "slow down"},
		{"minute's quota", `{"error":{"code":429,"message":"You exceeded your current quota","details":[{"retryDelay":"12s"}]}}`, 429, llm.RateLimited, "You exceeded your current quota"},
		{"day's quota", `{"error":{"code":429,"message":"quota","details":[{"violations":[{"quotaId":"RequestsPerDay"}]},{"retryDelay":"12s"}]}}`, 429, llm.Quota, "quota"},
		{"detail", `{"detail":[{"loc":["body"],"msg":"wrong"}]}`, 422, llm.BadRequest, `[{"loc":["body"],"msg":"wrong"}]`},
		{"control", "{\"error\":{\"message\":\"a\\u001b[31mb\\u0000\"}}", 400, llm.BadRequest, "a[31mb"},
		{"behind a gateway", `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"prompt is too long"}}}`, 400, llm.ContextLength, "Provider returned error"},
		{"moderation", `{"error":{"message":"flagged by moderation","code":403}}`, 403, llm.Refused, "flagged by moderation"},
		{"odd JSON", `{"error":{"message":{"a":1},"code":[1],"details":"x","metadata":7}}`, 400, llm.BadRequest, `{"a":1}`},
		{"long", `{"error":{"message":"` + strings.Repeat("ä", 3000) + `"}}`, 400, llm.BadRequest, strings.Repeat("ä", 1000) + "…"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			eachAPI(t, func(t *testing.T, api llm.API) {
				address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/html")
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.body)
				}))
				_, err := dial(t, api, address).Complete(t.Context(), ask("x"))
				var e *llm.Error
				if !errors.As(err, &e) {
					t.Fatal(err)
				}
				if e.Kind != c.kind || e.Status != c.status || e.Message != c.message {
					t.Errorf("%+v", e)
				}
			})
		})
	}
}

// An error in an answer that says that all is well.
func TestErrorInAnswer(t *testing.T) {
	t.Parallel()
	eachAPI(t, func(t *testing.T, api llm.API) {
		address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"error":{"code":429,"message":"slow down"}}`)
		}))
		_, err := dial(t, api, address).Complete(t.Context(), ask("x"))
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != llm.RateLimited || e.Message != "slow down" {
			t.Errorf("%+v", err)
		}
	})
}

func TestNoConnection(t *testing.T) {
	t.Parallel()
	eachAPI(t, func(t *testing.T, api llm.API) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := "http://" + l.Addr().String()
		_ = l.Close()
		_, err = dial(t, api, address).Complete(t.Context(), ask("x"))
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != llm.Transient || e.Status != 0 || e.ErrorType() != "APIConnectionError" {
			t.Errorf("%+v", err)
		}
		var op *net.OpError
		if !errors.As(err, &op) {
			t.Errorf("the cause is lost: %v", err)
		}
	})
}

// A transport that fails with the key in its text: neither the message nor the cause shows it.
func TestKeyInTransportError(t *testing.T) {
	t.Parallel()
	eachAPI(t, func(t *testing.T, api llm.API) {
		client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("cannot send %v %s", r.Header, key)
		})}
		_, err := dial(t, api, "http://127.0.0.1:1", func(e *llm.Endpoint) { e.HTTP = client }).Complete(t.Context(), ask("x"))
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(fmt.Sprintf("%v %+v", e, e), key) {
				t.Errorf("the key is in %v", e)
			}
		}
		if err == nil || !strings.Contains(err.Error(), "***") {
			t.Errorf("error = %v", err)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestContextEnds(t *testing.T) {
	t.Parallel()
	eachAPI(t, func(t *testing.T, api llm.API) {
		arrived := make(chan struct{}, 1)
		s := &llmtest.Server{Answer: func(*llmtest.Request) llmtest.Turn {
			arrived <- struct{}{}
			return llmtest.Turn{Fault: &llmtest.Fault{Kind: llmtest.Wait}}
		}}
		m := dial(t, api, serve(t, s))
		why := errors.New("the trial is over")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			<-arrived
			cancel(why)
		}()
		if got, err := m.Complete(ctx, ask("x")); got != nil || !errors.Is(err, why) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestWaitIsReleased(t *testing.T) {
	t.Parallel()
	eachAPI(t, func(t *testing.T, api llm.API) {
		release := make(chan struct{})
		s := &llmtest.Server{Answer: func(*llmtest.Request) llmtest.Turn {
			close(release)
			return llmtest.Turn{Text: "late", Fault: &llmtest.Fault{Kind: llmtest.Wait, Release: release}}
		}}
		got, err := dial(t, api, serve(t, s)).Complete(t.Context(), ask("x"))
		if err != nil || got.Message.Text() != "late" {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// endless is a body that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
func (endless) Close() error { return nil }

func TestBoundedBody(t *testing.T) {
	t.Parallel()
	client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: endless{}, Request: r}, nil
	})}
	_, err := dial(t, llm.Gemini, "http://127.0.0.1:1", func(e *llm.Endpoint) { e.HTTP = client }).Complete(t.Context(), ask("x"))
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.Transient || !strings.Contains(e.Message, "too large") {
		t.Errorf("error = %v", err)
	}
}

// What a server refuses by name is left away, at once and for one call or for good.
