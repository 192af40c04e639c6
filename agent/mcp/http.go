package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/proctor-run/proctor/internal/bounded"
)

const (
	// maxMessage bounds one message of a client, in bytes. Arguments that are larger are
	// files, which actions are not for.
	maxMessage = 4 << 20
	// maxRequests bounds the requests that are served at once by HTTP: every call that may
	// wait, and as many others.
	maxRequests = 2 * maxCalls
	// smallMessage is what any number of requests may have, in bytes. Larger ones, of which
	// the memory that they take once they are read is many times what they have, wait for each
	// other: maxLarge are served at once.
	smallMessage = 64 << 10
	maxLarge     = 4
	// maxSilence is less than what clients and what stands between are known to wait for
	// the first byte of an answer, or the next: half a minute and more.
	maxSilence = 10 * time.Second
)

// versionHeader is the revision of the protocol that a request follows.
const versionHeader = "Mcp-Protocol-Version"

// Handler serves the Streamable HTTP transport, without sessions, at whatever path: all
// revisions of the protocol by POST. Only those who may play the episode may reach it.
//
// An answer that takes long begins as a stream of events, in which comments show that the
// server is there; others are plain JSON. When a client hangs up, its call is not done
// unless it was taken already. A request whose Origin is not this machine is refused.
func (p *Player) Handler() http.Handler {
	inner := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return p.server }, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxMessage,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !fromHere(r.Header.Values("Origin")):
			http.Error(w, "the Origin is not allowed", http.StatusForbidden)
			return
		case r.Method != http.MethodPost:
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "only POST is served", http.StatusMethodNotAllowed)
			return
		}
		select {
		case p.slots <- struct{}{}:
			defer func() { <-p.slots }()
		default:
			http.Error(w, "too many requests at once", http.StatusServiceUnavailable)
			return
		}
		body, release, err := p.readBody(w, r)
		defer release()
		if err != nil {
			refuseBody(w, err)
			return
		}
		if status, failed, id := screen(r.Header.Get(versionHeader), body); failed != nil {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write(errorLine(id, failed)) // the client may be gone
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		l := &line{w: w, gone: r.Context()}
		inner.ServeHTTP(l, r.WithContext(context.WithValue(r.Context(), lineKey{}, l)))
	})
}

// fromHere reports whether a request comes from no web page, or from one of this machine.
func fromHere(origins []string) bool {
	for _, origin := range origins {
		u, err := url.Parse(origin)
		if err != nil {
			return false
		}
		host := u.Hostname()
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return false
		}
	}
	return true
}

// readBody reads a message, which is in nobody's way any more when release is called.
func (p *Player) readBody(w http.ResponseWriter, r *http.Request) (body []byte, release func(), err error) {
	release = func() {}
	bounded := http.MaxBytesReader(w, r.Body, maxMessage)
	if body, err = io.ReadAll(io.LimitReader(bounded, smallMessage+1)); err != nil || len(body) <= smallMessage {
		return body, release, err //nolint:wrapcheck // refuseBody says it
	}
	select {
	case p.large <- struct{}{}:
		release = func() { <-p.large }
	case <-r.Context().Done():
		return nil, release, context.Cause(r.Context())
	}
	rest, err := io.ReadAll(bounded)
	return append(body, rest...), release, err //nolint:wrapcheck // refuseBody says it
}

// refuseBody answers a request whose body could not be read.
func refuseBody(w http.ResponseWriter, err error) {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		http.Error(w, fmt.Sprintf("a message has at most %d bytes", tooLarge.Limit), http.StatusRequestEntityTooLarge)
		return
	}
	http.Error(w, "the request could not be read", http.StatusBadRequest)
}

// screen finds what the kit's server would answer with no message of the protocol: a
// revision that is not served and, in the revisions before firstModern, a method that is
// not known. It also finds batches, which one of those has, that are without measure. It
// returns nil where there is nothing of that kind.
func screen(version string, body []byte) (status int, failed *jsonrpc.Error, id jsonrpc.ID) {
	var req struct {
		ID     json.RawMessage `json:"id"`
		Method *string         `json:"method"` // nil in an answer
	}
	if json.Unmarshal(body, &req) == nil {
		var known bool
		if id, known = idOf(req.ID); !known {
			return http.StatusBadRequest, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the id is neither a text nor a number"}, id
		}
	} else if longBatch(body) {
		failed = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("a batch has at most %d messages", maxCalls)}
		return http.StatusBadRequest, failed, id
	}
	if version != "" {
		if failed = unsupported(version); failed != nil {
			return http.StatusBadRequest, failed, id
		}
	}
	if id.IsValid() && req.Method != nil && version < firstModern && !slices.Contains(methods, *req.Method) {
		failed = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("there is no method %q", bounded.Head(*req.Method, maxShownName))}
		return http.StatusOK, failed, id
	}
	return 0, nil, id
}

// idOf reads the id of a message. What cannot be one is not read: lists of lists take far more
// memory than their text.
func idOf(text json.RawMessage) (id jsonrpc.ID, known bool) {
	if len(text) > 0 && (text[0] == '[' || text[0] == '{') {
		return id, false
	}
	var v any
	if len(text) > 0 && json.Unmarshal(text, &v) != nil {
		return id, false
	}
	id, _ = jsonrpc.MakeID(v) // what is none is refused later
	return id, true
}

// longBatch reports whether a body is a batch of more messages than it may have, without
// keeping them.
func longBatch(body []byte) bool {
	d := json.NewDecoder(bytes.NewReader(body))
	if start, err := d.Token(); err != nil || start != json.Delim('[') {
		return false
	}
	for n := 0; d.More(); n++ {
		var message json.RawMessage
		if n == maxCalls {
			return true
		}
		if d.Decode(&message) != nil {
			return false // it is refused later
		}
	}
	return false
}

// firstModern is the first revision in which each request stands for itself.
const firstModern = "2026-07-28"

// methods are those of requests that the kit's server handles, also where it has nothing
// to offer.
var methods = []string{
	"completion/complete", "initialize", "logging/setLevel", "ping", "prompts/get", "prompts/list", "resources/list",
	"resources/read", "resources/subscribe", "resources/templates/list", "resources/unsubscribe", "server/discover",
	"subscriptions/listen", "tools/call", "tools/list",
}

// line is the answer to one request. Until it is written, [line.beat] keeps the client
// from giving up. Its methods may be called by several goroutines.
type line struct {
	gone context.Context // that of the request, which ends when the client hangs up

	mu     sync.Mutex
	w      http.ResponseWriter
	begun  bool // the header is written
	events bool // by beat: what is written now are the data of events
}

type lineKey struct{}

// onLine makes ctx end when the client of a request by HTTP hangs up, which it does not do
// by itself, and keeps a client waiting until release is called: one by HTTP with comments,
// one that asked for it with progress.
func (p *Player) onLine(ctx context.Context, req sdk.Request) (_ context.Context, release func()) {
	l, byHTTP := ctx.Value(lineKey{}).(*line)
	call, _ := req.(*sdk.CallToolRequest)
	var token any
	if call != nil {
		token = call.Params.GetProgressToken()
	}
	if !byHTTP && token == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop, beat := func() bool { return true }, func(n int) {
		progress := &sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(n)}
		_ = call.Session.NotifyProgress(ctx, progress) // what is wrong with the stream, reading tells, too
	}
	if byHTTP {
		stop = context.AfterFunc(l.gone, func() { cancel(context.Cause(l.gone)) })
		beat = func(n int) { l.beat(token, n) }
	}
	released, held := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(held)
		every(p.silence, released, beat)
	}()
	return ctx, func() {
		close(released)
		<-held // nothing else may write when the answer does
		stop()
		cancel(nil)
	}
}

// every calls f, with how often it did, at intervals until it is released.
func every(interval time.Duration, released <-chan struct{}, f func(n int)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-released:
			return
		case <-tick.C:
			f(n)
		}
	}
}

const eventStream = "text/event-stream"

// beat shows the client that the server is there: with a comment, or with the n-th
// progress of what it gave a token for.
func (l *line) beat(token any, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.w.Header()
	if !l.begun {
		h.Set("Content-Type", eventStream)
		h.Set("Cache-Control", "no-cache, no-transform")
		h.Set("X-Accel-Buffering", "no") // proxies that know this pass events on at once
		l.w.WriteHeader(http.StatusOK)
		l.begun, l.events = true, true
	}
	if h.Get("Content-Type") != eventStream {
		return
	}
	if token == nil {
		_, _ = io.WriteString(l.w, ": waiting\n\n") // the client may be gone
	} else if params, err := json.Marshal(&sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(n)}); err == nil {
		if data, err := jsonrpc.EncodeMessage(&jsonrpc.Request{Method: "notifications/progress", Params: params}); err == nil {
			_ = l.event(data) // the client may be gone
		}
	}
	_ = http.NewResponseController(l.w).Flush()
}

// event writes a message as an event. l.mu is held.
func (l *line) event(message []byte) error {
	// A line of data ends at a line break, of which JSON needs none.
	event := append([]byte("event: message\ndata: "), bytes.ReplaceAll(bytes.TrimRight(message, "\n"), []byte("\n"), []byte("\ndata: "))...)
	_, err := l.w.Write(append(event, "\n\n"...))
	return err //nolint:wrapcheck // it stands around a stream
}

// Header is that of the answer.
func (l *line) Header() http.Header { return l.w.Header() }

// WriteHeader writes the status, unless the answer has begun as events: what failed then
// is told in the message alone.
func (l *line) WriteHeader(status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.events {
		return
	}
	l.begun = true
	l.w.WriteHeader(status)
}

// Write writes a part of the answer, or a whole message where it has begun as events.
func (l *line) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = true
	if !l.events {
		return l.w.Write(data) //nolint:wrapcheck // it stands around a stream
	}
	if err := l.event(data); err != nil {
		return 0, err
	}
	return len(data), nil
}

// FlushError sends what was written.
func (l *line) FlushError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return http.NewResponseController(l.w).Flush() //nolint:wrapcheck // it stands around a stream
}
