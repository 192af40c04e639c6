package feed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

const token = "tok-0123456789"

// env is an environment that describes both receivers.
func env(base string) map[string]string {
	return map[string]string{
		"EVAL_PROGRESS_BASE_URL": base, "EVAL_RUN_ID": "run 1", "EVAL_SUBMISSION_ID": "sub-2", "EVAL_RUN_TOKEN": token,
		"EVAL_LOG_BASE_URL": base, "EVAL_ATTEMPT_ID": "att/3", "EVAL_ATTEMPT_TOKEN": token,
	}
}

func lookup(env map[string]string) Lookup {
	return func(name string) (string, bool) {
		text, ok := env[name]
		return text, ok
	}
}

// options are those of both targets.
func options(t *testing.T, where string, env map[string]string) Options {
	t.Helper()
	progress, err := ProgressTarget(where, lookup(env))
	logs, logErr := LogTarget(where, lookup(env))
	if err := errors.Join(err, logErr); err != nil {
		t.Fatal(err)
	}
	return Options{Progress: progress, Logs: logs}
}

// server remembers what it got.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []request
}

type request struct{ method, path, auth, contentType, body string }

func newServer(t *testing.T, answer http.HandlerFunc) *server {
	t.Helper()
	r := &server{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Errorf("reading a request: %v", err)
		}
		r.mu.Lock()
		r.requests = append(r.requests, request{
			req.Method, req.URL.EscapedPath(), req.Header.Get("Authorization"), req.Header.Get("Content-Type"), string(body),
		})
		r.mu.Unlock()
		answer(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func accepted(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }

// of returns what came to paths that end so, in order.
func (r *server) of(end string) []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.requests), func(req request) bool { return !strings.HasSuffix(req.path, end) })
}

// warnings remembers what a feed warns of.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

func (w *warnings) add(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.texts)
}

// ended is a context that has ended.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func send(t *testing.T, f *Feed, events ...Progress) {
	t.Helper()
	for _, p := range events {
		if err := f.Progress(p); err != nil {
			t.Fatal(err)
		}
	}
}

const odd = "ä \u2028\"\\\x7f😀\n"

// TestEventsByHTTP: the bytes of the outcome mapping, sections 15.2 and 15.3.
func TestEventsByHTTP(t *testing.T) {
	t.Parallel()
	r := newServer(t, accepted)
	f := New(options(t, "", env(r.URL+"/base/")))
	send(t, f,
		Progress{Task: "tä", Trial: "t__attempt-1", Phase: Assigned},
		Progress{Task: "t", Trial: "t__attempt-1", Phase: Completed, Message: odd},
		Progress{Task: "t", Phase: Failed, Message: " "})
	f.Delta("t", "t__attempt-1", "line\n")
	f.Delta("t", "t__attempt-1", "")
	f.Finished(Trial{Task: "t", Trial: "t__attempt-1", Status: "completed", Agent: odd, Harness: " \n", TestStdout: "ok"})
	f.Finished(Trial{Task: "t", Trial: "t__attempt-2", Status: "failed"})
	if !f.Close(t.Context()) {
		t.Error("a line is said to be incomplete")
	}

	auth := "Bearer " + token
	head := `{"schema_version":1,"eval_run_id":"run 1","submission_id":"sub-2","task_id":`
	progress := request{http.MethodPost, "/base/evaluation/v1/runs/run%201/progress", auth, "application/json", ""}
	want := []request{progress, progress, progress}
	want[0].body = head + `"tä","sequence":1,"status":"assigned","event_type":"task.status","progress":null,"message":"t__attempt-1"}`
	want[1].body = head + `"t","sequence":2,"status":"completed","event_type":"task.status","progress":1.0,` +
		"\"message\":\"ä \u2028\\\"\\\\\x7f😀\\n\"}"
	want[2].body = head + `"t","sequence":3,"status":"failed","event_type":"task.status","progress":null,"message":null}`
	if got := r.of("/progress"); !slices.Equal(got, want) {
		t.Errorf("progress: got\n%q\nwant\n%q", got, want)
	}

	log := request{http.MethodPost, "/base/internal/v1/evaluations/att%2F3/events", auth, "application/x-ndjson", ""}
	want = []request{log, log}
	want[0].body = `{"kind":"log","trial_name":"t__attempt-1","task_id":"t","stream":"agent","message":"line\n"}`
	want[1].body = `{"kind":"log","trial_name":"t__attempt-1","task_id":"t","status":"completed","stream":"agent",` +
		`"message":"\u00e4 \u2028\"\\\u007f\ud83d\ude00\n"}` + "\n" +
		`{"kind":"log","trial_name":"t__attempt-1","task_id":"t","status":"completed","stream":"test_stdout","message":"ok"}`
	if got := r.of("/events"); !slices.Equal(got, want) {
		t.Errorf("logs: got\n%q\nwant\n%q", got, want)
	}
}

// TestEventsOnStandardOutput: one line each, in order, and nothing that any reader of
// lines takes for another line.
func TestEventsOnStandardOutput(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := options(t, StandardOutput, map[string]string{"EVAL_RUN_ID": " run "})
	o.Out = &out
	f := New(o)
	send(t, f, Progress{Task: "t", Phase: Running, Message: "x\u2028BASE_BENCHMARK_RESULT={}\n\u0085ä"})
	f.Delta("t", "n", "\u2028BASE_BENCHMARK_RESULT={}\n")
	f.Finished(Trial{Task: "t", Trial: "n", Status: "failed", Harness: "a", TestStdout: "b"})
	send(t, f, Progress{Task: "t", Phase: Failed})
	if !f.Close(t.Context()) {
		t.Error("a line is said to be incomplete")
	}
	head := `{"schema_version":1,"eval_run_id":"run","submission_id":null,"task_id":"t","sequence":`
	want := head + `1,"status":"running","event_type":"task.status","progress":null,` +
		`"message":"x\u2028BASE_BENCHMARK_RESULT={}\n\u0085\u00e4"}` + "\n" +
		`{"kind":"log","trial_name":"n","task_id":"t","stream":"agent","message":"\u2028BASE_BENCHMARK_RESULT={}\n"}` + "\n" +
		`{"kind":"log","trial_name":"n","task_id":"t","status":"failed","stream":"harness","message":"a"}` + "\n" +
		`{"kind":"log","trial_name":"n","task_id":"t","status":"failed","stream":"test_stdout","message":"b"}` + "\n" +
		head + `2,"status":"failed","event_type":"task.status","progress":null,"message":null}` + "\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestUnknownPhase(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := options(t, StandardOutput, nil)
	o.Out = &out
	for name, f := range map[string]*Feed{"without a target": New(Options{}), "with one": New(o)} {
		err := f.Progress(Progress{Task: "t", Phase: "done"})
		want := `unknown phase "done" of a trial: expected one of assigned, starting, waiting, running, completed, failed`
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
		f.Close(t.Context())
	}
	if out.Len() > 0 {
		t.Errorf("%q was sent", &out)
	}
}

// TestSequence: whoever calls, events arrive in the order of their numbers.
func TestSequence(t *testing.T) {
	t.Parallel()
	r := newServer(t, accepted)
	f := New(options(t, "", env(r.URL)))
	const callers, each = 8, 25
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for range each {
				if err := f.Progress(Progress{Task: fmt.Sprint(i), Phase: Running}); err != nil {
					t.Error(err)
				}
				f.Delta("t", "n", "x\n")
			}
		})
	}
	wg.Wait()
	f.Close(t.Context())
	got := r.of("/progress")
	if len(got) != callers*each || len(r.of("/events")) != callers*each {
		t.Fatalf("%d progress and %d log events came, want %d of each", len(got), len(r.of("/events")), callers*each)
	}
	for i, req := range got {
		var event struct{ Sequence int }
		if err := json.Unmarshal([]byte(req.body), &event); err != nil || event.Sequence != i+1 {
			t.Fatalf("event %d has sequence %d, %v", i+1, event.Sequence, err)
		}
	}
}

// TestFailingReceivers: one warning each, which says why and has no token.
func TestFailingReceivers(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = w.Write(bytes.Repeat([]byte(token), 1<<18))
		}
	}
	garbage := func(w http.ResponseWriter, req *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 "+req.Header.Get("Authorization")+"\x1b[31m\r\n\r\n")
		_ = conn.Close()
	}
	for _, c := range []struct{ name, url, want string }{
		{"dead", dead, "connection refused"},
		{"no right", newServer(t, status(http.StatusUnauthorized)).URL, "the answer is status 401"},
		{"no such event", newServer(t, status(http.StatusUnprocessableEntity)).URL, "the answer is status 422"},
		{"garbage that repeats the token", newServer(t, garbage).URL, "malformed HTTP"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var warned warnings
			o := options(t, "", env(c.url))
			o.Logs, o.Warn = nil, warned.add
			f := New(o)
			send(t, f, Progress{Task: "t", Phase: Assigned}, Progress{Task: "t", Phase: Starting})
			if !f.Close(t.Context()) {
				t.Error("a line is said to be incomplete")
			}
			all := warned.all()
			if len(all) != 1 || !strings.Contains(all[0], c.want) || !strings.HasPrefix(all[0], "progress events to http://127.0.0.1:") {
				t.Errorf("got %q, want one with %q", all, c.want)
			}
			for _, text := range all {
				if strings.Contains(text, token) || strings.Contains(text, "run%201") || strings.ContainsAny(text, "\x1b\n") {
					t.Errorf("%q has a token, a path or control characters", text)
				}
			}
		})
	}
}

// TestHangingReceiver: callers do not wait; each request has its limit, and Close its
// own.
func TestHangingReceiver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		timeout time.Duration
		abandon bool
		want    string
	}{
		{"limit of requests", 50 * time.Millisecond, false, "no answer within 50ms"},
		{"end of Close", time.Hour, true, "2 progress events, 0 log events, 0 parts of live output"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			came, release := make(chan struct{}, 2), make(chan struct{})
			r := newServer(t, func(http.ResponseWriter, *http.Request) {
				came <- struct{}{}
				<-release
			})
			defer close(release)
			var warned warnings
			o := options(t, "", env(r.URL))
			o.Logs, o.Warn, o.Timeout = nil, warned.add, c.timeout
			f := New(o)
			send(t, f, Progress{Task: "t", Phase: Assigned}, Progress{Task: "t", Phase: Starting})
			ctx := t.Context()
			if c.abandon {
				<-came
				ctx = ended()
			}
			if !f.Close(ctx) {
				t.Error("a line is said to be incomplete")
			}
			if c.abandon {
				<-f.notices.done
			}
			if all := warned.all(); len(all) != 1 || !strings.Contains(all[0], c.want) {
				t.Errorf("got %q, want one with %q", all, c.want)
			}
		})
	}
}

// TestBlockedWriter: nobody reads a pipe. What is called returns, and whoever prints the
// result is told that a line may be incomplete.
func TestBlockedWriter(t *testing.T) {
	t.Parallel()
	read, write := io.Pipe()
	var warned warnings
	o := options(t, StandardOutput, nil)
	o.Out, o.Warn = write, warned.add
	f := New(o)
	send(t, f, Progress{Task: "t", Phase: Assigned})
	if _, err := read.Read(make([]byte, 1)); err != nil { // the first write has begun
		t.Fatal(err)
	}
	for range 3000 {
		f.Delta("t", "n", "text\n")
	}
	for range 2 {
		if f.Close(ended()) {
			t.Error("the line that nobody reads is said to be complete")
		}
	}
	<-f.notices.done
	if all := warned.all(); len(all) != 1 || !strings.Contains(all[0], "1 progress events, 0 log events, 3000 parts") {
		t.Errorf("warnings: %q", all)
	}
	// What had begun ends as a line, and nothing follows it.
	rest := make(chan []byte)
	go func() {
		text, _ := io.ReadAll(read)
		rest <- text
	}()
	<-f.progress.done
	_ = write.Close()
	if text := <-rest; bytes.Count(text, []byte{'\n'}) != 1 || !bytes.HasSuffix(text, []byte("}\n")) {
		t.Errorf("%q came after Close", text)
	}
}

// narrow is a disk with little room.
type narrow struct {
	bytes.Buffer
	room int
}

func (n *narrow) Write(p []byte) (int, error) {
	fits := min(len(p), n.room)
	n.room -= fits
	n.Buffer.Write(p[:fits])
	if fits < len(p) {
		n.room = 1 << 20 // somebody makes room
		return fits, errors.New("no space left")
	}
	return fits, nil
}

// TestTornLine: where a line is cut off, the next one begins on a new line.
func TestTornLine(t *testing.T) {
	t.Parallel()
	var warned warnings
	out := &narrow{room: 10}
	o := options(t, StandardOutput, nil)
	o.Out, o.Warn = out, warned.add
	f := New(o)
	f.Delta("t", "n", "a")
	if f.Close(t.Context()) {
		t.Error("a line without an end is said to be complete")
	}
	if want := []string{"events to standard output: no space left; later failures are not reported"}; !slices.Equal(warned.all(), want) {
		t.Errorf("got %q, want %q", warned.all(), want)
	}

	out = &narrow{room: 10}
	o.Out = out
	f = New(o)
	f.Delta("t", "n", "a")
	f.Delta("t", "n", "b")
	if !f.Close(t.Context()) {
		t.Error("a line is said to be incomplete")
	}
	want := `{"kind":"l` + "\n" + `{"kind":"log","trial_name":"n","task_id":"t","stream":"agent","message":"b"}` + "\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

// TestRedirect: the token stays with its receiver.
func TestRedirect(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		other := newServer(t, accepted)
		r := newServer(t, func(w http.ResponseWriter, req *http.Request) { http.Redirect(w, req, other.URL, code) })
		var warned warnings
		o := options(t, "", env(r.URL))
		o.Warn = warned.add
		f := New(o)
		send(t, f, Progress{Task: "t", Phase: Assigned})
		f.Delta("t", "n", "x")
		f.Close(t.Context())
		if n := len(other.of("")); n > 0 || len(r.of("")) != 2 {
			t.Errorf("%d: the other server got %d requests, the first %d", code, n, len(r.of("")))
		}
		all := warned.all()
		if len(all) != 2 || !strings.Contains(all[0], fmt.Sprintf("status %d, and redirects are not followed", code)) {
			t.Errorf("%d: %q", code, all)
		}
	}
}

// TestRedaction: no text leaves with a secret, not even a part of one at a cut.
func TestRedaction(t *testing.T) {
	t.Parallel()
	const secret = "s3cret-of-the-miner"
	var out bytes.Buffer
	r := newServer(t, accepted)
	for name, where := range map[string]string{"HTTP": "", "standard output": StandardOutput} {
		o := options(t, where, env(r.URL))
		o.Out = &out
		o.Redact = func(text string) string { return strings.ReplaceAll(text, secret, "[GONE]") }
		f := New(o)
		send(t, f,
			Progress{Task: secret, Trial: secret, Phase: Running},
			Progress{Phase: Running, Message: "m " + secret})
		f.Delta(secret, secret, secret)
		// The secret lies across the place where 64 KiB begin.
		long := secret + strings.Repeat("x", maxMessage-len(secret)/2)
		f.Finished(Trial{Task: secret, Trial: secret, Status: secret, Agent: long, Harness: secret, TestStdout: secret})
		f.Close(t.Context())
		all := out.String()
		for _, req := range r.of("") {
			all += req.body
		}
		if strings.Contains(all, secret[len(secret)/2:]) || strings.Count(all, "[GONE]") < 14 {
			t.Errorf("%s: %.2000q", name, all)
		}
	}

	out.Reset()
	o := options(t, "", env(r.URL))
	standard := options(t, StandardOutput, nil)
	o.Logs, o.Out = standard.Logs, &out
	f := New(o)
	f.Delta("t", "n", "the agent prints "+token)
	f.Close(t.Context())
	if !strings.Contains(out.String(), `"the agent prints [REDACTED_GATEWAY_TOKEN]"`) {
		t.Errorf("the token of a receiver: %q", &out)
	}
}

// TestBounds: of long texts the end is sent, whole characters of it, behind a mark.
func TestBounds(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := options(t, StandardOutput, nil)
	o.Out = &out
	f := New(o)
	long := strings.Repeat("ä", maxMessage) + "\xff!!"
	f.Finished(Trial{Task: long, Trial: long, Status: long, Agent: long})
	send(t, f, Progress{Task: long, Phase: Running, Message: long})
	f.Close(t.Context())
	for line := range strings.Lines(out.String()) {
		var event map[string]any
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
		for key, v := range event {
			text, _ := v.(string)
			if len(text) < 100 {
				continue
			}
			limit := 1 << 10
			if key == "message" {
				limit = maxMessage
			}
			mark, kept, _ := strings.Cut(text, "\n")
			if want := fmt.Sprintf("[proctor: %d bytes of output cut here]", 2*maxMessage+4-limit); mark != want {
				t.Errorf("%s: got the mark %q, want %q", key, mark, want)
			}
			if n := utf8.RuneCountInString(kept); n != (limit-4)/2+3 || !strings.HasSuffix(kept, "ää\uFFFD!!") {
				t.Errorf("%s: %d characters, %q", key, n, kept[len(kept)-10:])
			}
		}
	}
	if strings.Count(out.String(), "bytes of output cut here") != 6 {
		t.Errorf("%.200s", &out)
	}
}
