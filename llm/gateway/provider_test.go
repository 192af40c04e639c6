package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/gateway"
)

const wellDone = `{"choices":[{"message":{"content":"well"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`

// wild is a provider that answers with any bytes until it is tamed.
type wild struct {
	answer func(w io.Writer)
	tame   atomic.Bool
	asked  atomic.Int64
}

// serve answers one request on each connection.
func (p *wild) serve(t *testing.T) (base string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				end := context.AfterFunc(ctx, func() { _ = conn.Close() })
				defer end()
				defer func() { _ = conn.Close() }()
				p.one(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		stop()
		conns.Wait()
	})
	return "http://" + l.Addr().String() + "/v1"
}

func (p *wild) one(conn net.Conn) {
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	p.asked.Add(1)
	if p.tame.Load() {
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(wellDone), wellDone)
		return
	}
	p.answer(conn)
}

func says(text string) func(io.Writer) {
	return func(w io.Writer) { _, _ = io.WriteString(w, text) }
}

// endless repeats text behind a head until nobody reads it.
func endless(head, text string) func(io.Writer) {
	return func(w io.Writer) {
		text := bytes.Repeat([]byte(text), max(1, 64<<10/len(text)))
		if _, err := io.WriteString(w, head); err != nil {
			return
		}
		for {
			if _, err := w.Write(text); err != nil {
				return
			}
		}
	}
}

// TestWildProvidersHarmOnlyTheirCall: the caller gets what is left of the answer, without the
// key and what is not for it, and the next call is served.
func TestWildProvidersHarmOnlyTheirCall(t *testing.T) {
	t.Parallel()
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	bomb := compressed(t, strings.Repeat("\x00", 16<<20))
	for _, c := range []struct {
		name   string
		answer func(io.Writer)
		status int
		cut    bool // the caller sees that it has not all
		calls  int64
	}{
		{"nothing", says(""), 502, false, 0},
		{"no HTTP", says("hello\r\n\r\n"), 502, false, 0},
		{"a switch of protocols", says("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nhello"), 502, false, 1},
		{"a status of two digits", says("HTTP/1.1 042 None\r\nContent-Length: 0\r\n\r\n"), 502, false, 1},
		{"a status of none", says("HTTP/1.1 000 None\r\nContent-Length: 0\r\n\r\n"), 502, false, 1},
		{"a status beyond all", says("HTTP/1.1 999 Beyond\r\nContent-Length: 2\r\n\r\n{}"), 999, false, 0},
		{"hints first", says(strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n", 3) + ok + "Content-Length: 2\r\n\r\n{}"), 200, false, 1},
		{"hints without end", endless("", "HTTP/1.1 103 Early Hints\r\nLink: <"+strings.Repeat("x", 1000)+">\r\n\r\n"), 502, false, 0},
		{"headers without end", endless("HTTP/1.1 200 OK\r\n", "X-Ratelimit-X: "+strings.Repeat("x", 1000)+"\r\n"), 502, false, 0},
		{"a body of what has none", says("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"), 204, false, 1},
		{"not modified", says("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello"), 502, false, 0},
		{"less than its length", says(ok + "Content-Length: 100\r\n\r\n{}"), 200, true, 1},
		{"more than its length", says(ok + "Content-Length: 2\r\nConnection: close\r\n\r\n{}HTTP/1.1 200 OK\r\n\r\n{}"), 200, false, 1},
		{"two lengths", says(ok + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"), 502, false, 0},
		{"a length below none", says(ok + "Content-Length: -2\r\n\r\n{}"), 502, false, 0},
		{"chunks that break off", says(ok + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n"), 200, true, 1},
		{"chunks that are none", says(ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"), 0, true, 1},
		{"a trailer", says(ok + "Trailer: X-Request-Id\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Request-Id: " + providerKey + "\r\n\r\n"), 200, false, 1},
		{"headers that are not for the caller", says(ok + "Set-Cookie: a=b\r\nLocation: /x\r\nX-Evil: 1\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"), 200, false, 1},
		{"a folded header", says("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n X-Evil: 1\r\nContent-Length: 2\r\n\r\n{}"), 200, false, 1},
		{"an encoding not asked for", says(ok + "Content-Encoding: br\r\nContent-Length: 2\r\n\r\n{}"), 502, false, 1},
		{"what is no gzip", says(ok + "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}"), 0, true, 1},
		{"a bomb", says(ok + "Content-Encoding: gzip\r\nContent-Length: " + fmt.Sprint(len(bomb)) + "\r\n\r\n" + bomb), 200, true, 1},
		{"an answer without end", endless(ok+"\r\n", `{"a":[`), 200, true, 1},
		{"a line without end", endless("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ", "x"), 200, true, 1},
		{"events without end", endless("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", "data: {\"choices\":[]}\n\n"), 200, true, 1},
		{"a refusal without end", endless("HTTP/1.1 400 Bad\r\n\r\n", `{"error":`), 400, false, 0},
		{"the key in an answer", says(ok + "X-Request-Id: " + providerKey + "\r\nConnection: close\r\n\r\n" + strings.Repeat(providerKey, 9000)), 200, false, 1},
		{"the key in a refusal", says("HTTP/1.1 400 Bad\r\nX-Request-Id: a" + providerKey + "\r\nContent-Type: " + providerKey + "\r\nX-Ratelimit-" + providerKey + ": 1\r\nConnection: close\r\n\r\n" + providerKey), 400, false, 0},
		{"the key in an address", says("HTTP/1.1 302 Found\r\nLocation: http://x.example/?key=" + providerKey + "%zz\r\nContent-Length: 0\r\n\r\n"), 502, false, 0},
		{"the key in place of HTTP", says(providerKey + "\r\n\r\n"), 502, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := &wild{answer: c.answer}
			base := p.serve(t)
			var file bytes.Buffer
			w := open(t, setup{api: llm.Chat, change: func(g *gateway.Gateway) {
				g.Route.Base, g.Recorder = base, &llm.Recorder{To: &file}
				g.Route.HTTP = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
				g.Bound(1<<20, 0, 0)
			}})
			got := post(t, w.url+"/v1/chat/completions", w.Key, plain)
			if got.status != c.status || (got.err != nil) != c.cut {
				t.Errorf("got status %d, %.200q, %v", got.status, got.body, got.err)
			}
			if all := strings.ToLower(fmt.Sprint(got.header, got.body, got.err, w.Failure(), file.String())); strings.Contains(all, providerKey) {
				t.Errorf("the key is in %.500s", all)
			}
			for name := range got.header {
				if !slices.Contains([]string{"Content-Type", "Content-Length", "Date", "X-Request-Id"}, name) {
					t.Errorf("the caller gets the header %s", name)
				}
			}
			p.tame.Store(true)
			if next := post(t, w.url+"/v1/chat/completions", w.Key, plain); next.status != 200 || next.body != wellDone {
				t.Errorf("the next call: %+v", next)
			}
			w.Close()
			if s := w.Meter.Spent(); s.Calls != c.calls+1 || p.asked.Load() > 4 {
				t.Errorf("%+v spent, asked %d times", s, p.asked.Load())
			}
			if !w.Hold(gateway.MaxHeld) {
				t.Error("what the call held is not given back")
			}
		})
	}
}

// TestKeyIsTakenOutOfStreams: also where it comes in pieces, and nothing else is.
func TestKeyIsTakenOutOfStreams(t *testing.T) {
	t.Parallel()
	const text = "data: {\"a\":\"" + providerKey + "\"}\n\ndata: sk-the-providers\n\ndata: sk-sk-the-providers-own-key\n\ndata: sk-the-"
	p := &wild{answer: func(w io.Writer) {
		_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
		for i := range len(text) {
			_, _ = fmt.Fprintf(w, "1\r\n%s\r\n", text[i:i+1])
		}
		_, _ = io.WriteString(w, "0\r\n\r\n")
	}}
	base := p.serve(t)
	w := open(t, setup{api: llm.Chat, change: func(g *gateway.Gateway) { g.Route.Base = base }})
	want := strings.ReplaceAll(text, providerKey, strings.Repeat("*", len(providerKey)))
	if got := post(t, w.url+"/v1/chat/completions", w.Key, plain); got.err != nil || got.body != want {
		t.Errorf("got %q, %v; want %q", got.body, got.err, want)
	}
}
