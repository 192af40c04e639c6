package docker_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/docker"
)

// fakeEngine answers the Engine API from a table: the first entry whose key,
// "METHOD /path", is the end of the request's decides.
type fakeEngine struct {
	mu     sync.Mutex
	routes map[string]http.HandlerFunc
	calls  []string
}

var versioned = regexp.MustCompile(`^/v1\.\d+`)

func (f *fakeEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := r.Method + " " + versioned.ReplaceAllString(r.URL.Path, "")
	f.mu.Lock()
	f.calls = append(f.calls, call)
	handle := f.routes[call]
	f.mu.Unlock()
	if handle == nil {
		handle = answer(http.StatusNotImplemented, `{"message":"not in the table: `+call+`"}`)
	}
	handle(w, r)
}

func (f *fakeEngine) set(call string, h http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.routes[call] = h
}

func (f *fakeEngine) called(call string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.calls {
		if c == call {
			n++
		}
	}
	return n
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// hang answers nothing until the client gives up.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// vanish cuts the connection.
func vanish(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

// upgrade takes over the connection, as exec start does, and writes bytes. It
// reads to the client's end before it closes: a socket closed over bytes that
// nobody read is reset, and a reset may overtake what was written.
func upgrade(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"+text)
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
		_, _ = io.Copy(io.Discard, buffered)
	}
}

// upgradeAndWait takes over the connection and says nothing until the client
// hangs up.
func upgradeAndWait(w http.ResponseWriter, _ *http.Request) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
	_, _ = io.Copy(io.Discard, buffered)
}

const (
	versionCall = "GET /version"
	imageCall   = "GET /images/img/json"
	pullCall    = "POST /images/create"
	createCall  = "POST /containers/create"
	startCall   = "POST /containers/c1/start"
	removeCall  = "DELETE /containers/c1"
	stateCall   = "GET /containers/c1/json"
	execCall    = "POST /containers/c1/exec"
	attachCall  = "POST /exec/e1/start"
	inspectCall = "GET /exec/e1/json"
	restartCall = "POST /containers/c1/restart"
	statCall    = "HEAD /containers/c1/archive"
	getCall     = "GET /containers/c1/archive"
	putCall     = "PUT /containers/c1/archive"
)

// newFake is an engine on which a sandbox can be created and destroyed.
func newFake(t testing.TB) (*fakeEngine, *docker.Backend) {
	t.Helper()
	f, url := serveFake(t)
	b, err := docker.New(docker.Options{AllowRemote: true, Engine: url})
	if err != nil {
		t.Fatal(err)
	}
	return f, b
}

func serveFake(t testing.TB) (f *fakeEngine, url string) {
	t.Helper()
	ping := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		w.Header().Set("Ostype", "linux")
	}
	f = &fakeEngine{routes: map[string]http.HandlerFunc{
		"HEAD /_ping": ping,
		"GET /_ping":  ping,
		versionCall:   answer(http.StatusOK, `{"Version":"20.10","ApiVersion":"1.41","Os":"linux"}`),
		imageCall:     answer(http.StatusOK, `{"Id":"sha256:1","Os":"linux","Config":{}}`),
		createCall:    answer(http.StatusCreated, `{"Id":"c1"}`),
		startCall:     answer(http.StatusNoContent, ""),
		removeCall:    answer(http.StatusNoContent, ""),
		stateCall:     answer(http.StatusOK, `{"Id":"c1","State":{"Running":true}}`),
		execCall:      answer(http.StatusCreated, `{"Id":"e1"}`),
		inspectCall:   answer(http.StatusOK, `{"ID":"e1","Running":false,"ExitCode":0}`),
		attachCall:    upgrade(""),
	}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return f, "tcp://" + strings.TrimPrefix(server.URL, "http://")
}

func fakeSandbox(t testing.TB) (*fakeEngine, sandbox.Sandbox) {
	t.Helper()
	f, b := newFake(t)
	sb, err := b.Create(t.Context(), sandbox.Spec{Name: "x", Image: sandbox.Image{Ref: "img"}})
	if err != nil {
		t.Fatal(err)
	}
	return f, sb
}

func TestFakeCheck(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.HandlerFunc{
		"500":     answer(http.StatusInternalServerError, `{"message":"broken inside"}`),
		"garbage": answer(http.StatusOK, `<html>hello</html>`),
		"windows": answer(http.StatusOK, `{"Os":"windows"}`),
		"vanish":  vanish,
		"hang":    hang,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, b := newFake(t)
			f.set(versionCall, h)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := b.Check(ctx); !errors.Is(err, sandbox.ErrUnavailable) {
				t.Errorf("got error %v, want ErrUnavailable", err)
			}
		})
	}
	if _, err := docker.New(docker.Options{Engine: "no address"}); !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("a broken address: got error %v, want ErrUnavailable", err)
	}
	far, err := docker.New(docker.Options{Engine: "tcp://127.0.0.1:1", AllowRemote: true})
	if err != nil {
		t.Fatal(err)
	}
	if far.Capabilities().Mounted {
		t.Error("an engine elsewhere claims Mounted")
	}
}

func TestFakeCreate(t *testing.T) {
	t.Parallel()
	oops := answer(http.StatusInternalServerError, `{"message":"broken inside"}`)
	absent := answer(http.StatusNotFound, `{"message":"No such image: img"}`)
	for _, tt := range []struct {
		name    string
		routes  map[string]http.HandlerFunc
		want    string
		is      error
		removed bool // a removal must have been asked for
	}{
		{name: "inspect fails", routes: map[string]http.HandlerFunc{imageCall: oops}, want: "broken inside"},
		{name: "inspect is garbage", routes: map[string]http.HandlerFunc{imageCall: answer(200, "<html>")}, want: `image "img"`},
		{name: "a Windows image", routes: map[string]http.HandlerFunc{imageCall: answer(200, `{"Id":"1","Os":"windows"}`)}, is: sandbox.ErrUnsupported, want: "windows"},
		{name: "the pull finds nothing", routes: map[string]http.HandlerFunc{imageCall: absent, pullCall: answer(404, `{"message":"manifest for img:latest not found: manifest unknown"}`)}, is: sandbox.ErrImageNotFound, want: `pulling "img"`},
		{name: "the pull finds nothing, late", routes: map[string]http.HandlerFunc{imageCall: absent, pullCall: answer(200, `{"status":"Pulling"}{"errorDetail":{"message":"manifest unknown"},"error":"x"}`)}, is: sandbox.ErrImageNotFound, want: "manifest unknown"},
		{name: "the registry is down", routes: map[string]http.HandlerFunc{imageCall: absent, pullCall: answer(500, `{"message":"dial tcp: i/o timeout"}`)}, want: "i/o timeout"},
		{name: "the pull is cut", routes: map[string]http.HandlerFunc{imageCall: absent, pullCall: answer(200, `{"status":"Pul`)}, want: `pulling "img"`},
		{name: "the pull lied", routes: map[string]http.HandlerFunc{imageCall: absent, pullCall: answer(200, `{"status":"done"}`)}, want: `image "img"`},
		{name: "create fails", routes: map[string]http.HandlerFunc{createCall: oops}, want: "broken inside"},
		{name: "create vanishes", routes: map[string]http.HandlerFunc{createCall: vanish}, want: `creating sandbox "x"`},
		{name: "start fails", routes: map[string]http.HandlerFunc{startCall: oops}, want: "broken inside", removed: true},
		{name: "start vanishes", routes: map[string]http.HandlerFunc{startCall: vanish}, want: "EOF", removed: true},
		{name: "start hangs", routes: map[string]http.HandlerFunc{startCall: hang}, is: errEnough, want: "enough", removed: true},
		{name: "the pull hangs", routes: map[string]http.HandlerFunc{imageCall: absent, pullCall: hang}, is: errEnough, want: "enough"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, b := newFake(t)
			ctx, enough := context.WithCancelCause(t.Context())
			defer enough(nil)
			for call, h := range tt.routes {
				f.set(call, func(w http.ResponseWriter, r *http.Request) {
					if errors.Is(tt.is, errEnough) && call != imageCall { // it hangs
						enough(errEnough)
					}
					h(w, r)
				})
			}
			_, err := b.Create(ctx, sandbox.Spec{Name: "x", Image: sandbox.Image{Ref: "img"}})
			if err == nil || !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("got error %v, want one that says %q", err, tt.want)
			}
			if got := f.called(removeCall) > 0; tt.removed && !got {
				t.Errorf("what was created is not removed; calls: %q", f.calls)
			}
		})
	}
}

var errEnough = errors.New("enough")

func TestFakeCreateNeedsThreeCalls(t *testing.T) {
	t.Parallel()
	f, sb := fakeSandbox(t)
	if err := sb.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"HEAD /_ping", imageCall, createCall, startCall, removeCall}
	if fmt.Sprint(f.calls) != fmt.Sprint(want) {
		t.Errorf("got calls %q, want %q", f.calls, want)
	}
}

func TestFakeExec(t *testing.T) {
	t.Parallel()
	oops := answer(http.StatusInternalServerError, `{"message":"broken inside"}`)
	for _, tt := range []struct {
		name   string
		routes map[string]http.HandlerFunc
		code   int
		out    string
		err    string
	}{
		{name: "create fails", routes: map[string]http.HandlerFunc{execCall: oops}, err: "broken inside"},
		{name: "create is garbage", routes: map[string]http.HandlerFunc{execCall: answer(201, "<")}, err: "starting a command"},
		{name: "attach fails", routes: map[string]http.HandlerFunc{attachCall: oops}, err: "starting a command"},
		{name: "attach vanishes", routes: map[string]http.HandlerFunc{attachCall: vanish}, err: "starting a command"},
		{name: "the engine's own message", routes: map[string]http.HandlerFunc{
			attachCall:  upgrade("\x01\x00\x00\x00\x00\x00\x00\x05oops\n"),
			inspectCall: answer(200, `{"ID":"e1","Running":false,"ExitCode":126}`),
		}, code: 126, out: "oops\n"},
		{name: "output is garbage", routes: map[string]http.HandlerFunc{
			attachCall:  upgrade("nonsense, nonsense"),
			inspectCall: answer(200, `{"ID":"e1","Running":true}`),
		}, err: "unknown stream"},
		{name: "a frame is cut", routes: map[string]http.HandlerFunc{
			attachCall:  upgrade("\x01\x00\x00\x00\xff\x00\x00\x05oops\n"),
			inspectCall: answer(200, `{"ID":"e1","Running":true}`),
		}, out: "oops\n", err: "5 of"},
		{name: "no exit code is told", routes: map[string]http.HandlerFunc{inspectCall: oops}, err: "exit code"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, sb := fakeSandbox(t)
			for call, h := range tt.routes {
				f.set(call, h)
			}
			var out strings.Builder
			st, err := sb.Exec(t.Context(), sandbox.Command{Shell: "true", Stdout: &out})
			if st.Code != tt.code || out.String() != tt.out || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %+v, %v, output %q; want code %d, error %q", st, err, out.String(), tt.code, tt.err)
			}
		})
	}
}

// Without a supervisor a kill starts the container anew; what the engine does
// not show to be so is no proof.
func TestFakeKillThatCannotBeProven(t *testing.T) {
	t.Parallel()
	f, sb := fakeSandbox(t)
	if s := sb.(sandbox.Supervised).Supervision(); s != sandbox.SupervisionEngine {
		t.Errorf("supervision %q", s)
	}
	m, err := sb.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	started, alive := 0, true
	f.set(stateCall, func(w http.ResponseWriter, r *http.Request) {
		answer(200, fmt.Sprintf(`{"Id":"c1","State":{"Running":%v,"StartedAt":"start %d"}}`, alive, started))(w, r)
	})
	for name, c := range map[string]struct {
		restart http.HandlerFunc
		want    string
	}{
		"refused":      {answer(500, `{"message":"broken inside"}`), "broken inside"},
		"cut":          {vanish, "EOF"},
		"not done":     {answer(204, ""), "could not be started anew"},
		"not up again": {func(w http.ResponseWriter, r *http.Request) { started++; alive = false; answer(204, "")(w, r) }, "could not be started anew"},
	} {
		alive = true
		f.set(restartCall, c.restart)
		if err := sb.KillTree(t.Context(), m, time.Millisecond); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %q", name, err, c.want)
		}
	}
	alive = true
	f.set(restartCall, func(w http.ResponseWriter, r *http.Request) { started++; answer(204, "")(w, r) })
	if err := sb.KillTree(t.Context(), m, time.Millisecond); err != nil {
		t.Error(err)
	}
	for _, wrong := range []sandbox.Mark{"", "c1", "c2/engine", "c1/1.2.3"} {
		if sb.KillTree(t.Context(), wrong, time.Millisecond) == nil {
			t.Errorf("%q is taken for a mark", wrong)
		}
	}
	f.set(execCall, answer(201, `{"Id":"e1"}`))
	f.set(attachCall, upgradeAndWait)
	before := f.called(restartCall)
	st, err := sb.Exec(t.Context(), sandbox.Command{Shell: "sleep 9", Timeout: 50 * time.Millisecond})
	if err != nil || !st.TimedOut || st.Code != 137 || f.called(restartCall) != before+1 {
		t.Errorf("a command whose time is up: %+v, %v, %d restarts", st, err, f.called(restartCall)-before)
	}
	f.set(restartCall, answer(500, `{"message":"broken inside"}`))
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(errEnough) })
	if _, err := sb.Exec(ctx, sandbox.Command{Shell: "sleep 9"}); !errors.Is(err, errEnough) || !strings.Contains(err.Error(), "broken inside") {
		t.Errorf("a command that cannot be ended: %v", err)
	}
}

// What the engine cannot carry is refused, and not changed.
func TestFakeExecOfBytes(t *testing.T) {
	t.Parallel()
	_, sb := fakeSandbox(t)
	for _, cmd := range []sandbox.Command{{Shell: "echo \xff"}, {Argv: []string{"echo", "\xfe"}}, {Shell: "true", Env: []string{"A=\x80"}}} {
		if _, err := sb.Exec(t.Context(), cmd); err == nil || !strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("%+v: got error %v", cmd, err)
		}
	}
}

func TestFakeFiles(t *testing.T) {
	t.Parallel()
	stat := base64.StdEncoding.EncodeToString([]byte(`{"name":"d","mode":2147484141}`))
	withStat := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("X-Docker-Container-Path-Stat", stat)
			_, _ = io.WriteString(w, body)
		}
	}
	f, sb := fakeSandbox(t)
	for name, h := range map[string]http.HandlerFunc{
		"garbage":      withStat("no tar at all, but more than nothing " + strings.Repeat("x", 1000)),
		"no stat":      answer(200, ""),
		"vanish":       vanish,
		"broken":       answer(500, `{"message":"broken inside"}`),
		"a file's way": answer(400, `{"message":"bad parameter"}`),
	} {
		f.set(getCall, h)
		if err := sb.Download(t.Context(), "/d", io.Discard); err == nil || errors.Is(err, sandbox.ErrNotExist) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	f.set(getCall, answer(404, `{"message":"Could not find the file /d"}`))
	if err := sb.Download(t.Context(), "/d", io.Discard); !errors.Is(err, sandbox.ErrNotExist) {
		t.Errorf("got error %v, want ErrNotExist", err)
	}
	f.set(stateCall, answer(404, `{"message":"No such container: c1"}`))
	if err := sb.Download(t.Context(), "/d", io.Discard); err == nil || errors.Is(err, sandbox.ErrNotExist) {
		t.Errorf("without a container: got error %v", err)
	}

	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	_ = w.WriteHeader(&tar.Header{Name: "x", Typeflag: tar.TypeReg, Size: 1})
	_, _ = w.Write([]byte("x"))
	_ = w.Close()
	f.set(statCall, withStat(""))
	for name, h := range map[string]http.HandlerFunc{"broken": answer(500, `{"message":"broken inside"}`), "vanish": vanish} {
		f.set(putCall, h)
		if err := sb.Upload(t.Context(), "/d", bytes.NewReader(archive.Bytes())); err == nil {
			t.Errorf("upload, %s: no error", name)
		}
	}
	f.set(putCall, answer(200, ""))
	if err := sb.Upload(t.Context(), "/d", strings.NewReader("no tar at all"+strings.Repeat("x", 1000))); err == nil {
		t.Error("uploading what is no archive: no error")
	}
	for _, path := range []string{"", "relative", "../x"} {
		if sb.Upload(t.Context(), path, nil) == nil || sb.Download(t.Context(), path, nil) == nil {
			t.Errorf("path %q: no error", path)
		}
	}
}

func TestFakeDestroy(t *testing.T) {
	t.Parallel()
	f, sb := fakeSandbox(t)
	f.set(removeCall, answer(500, `{"message":"device or resource busy"}`))
	if err := sb.Destroy(t.Context()); err == nil {
		t.Error("a removal that fails: no error")
	}
	f.set(removeCall, hang)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errEnough)
	defer cancel()
	if err := sb.Destroy(ctx); !errors.Is(err, errEnough) {
		t.Errorf("a removal that hangs: got error %v, want the cause", err)
	}
	busy := 0
	f.set(removeCall, func(w http.ResponseWriter, r *http.Request) {
		if busy++; busy < 3 {
			answer(409, `{"message":"removal of container c1 is already in progress"}`)(w, r)
			return
		}
		answer(404, `{"message":"No such container: c1"}`)(w, r)
	})
	if err := sb.Destroy(t.Context()); err != nil {
		t.Errorf("a removal that is under way: %v", err)
	}
	before := f.called(removeCall)
	if err := sb.Destroy(t.Context()); err != nil || f.called(removeCall) != before {
		t.Errorf("once more: %v, %d calls", err, f.called(removeCall)-before)
	}
	if _, err := sb.Exec(t.Context(), sandbox.Command{Shell: "true"}); !errors.Is(err, sandbox.ErrDestroyed) {
		t.Errorf("got error %v, want ErrDestroyed", err)
	}
}

func TestFakeProgress(t *testing.T) {
	t.Parallel()
	f, b := newFake(t)
	f.set(imageCall, func(w http.ResponseWriter, r *http.Request) {
		if f.called(pullCall) == 0 {
			answer(404, `{"message":"No such image"}`)(w, r)
			return
		}
		answer(200, `{"Id":"1","Os":"linux"}`)(w, r)
	})
	f.set(pullCall, answer(200, `{"status":"Downloading","id":"1"}`+strings.Repeat(`{"status":"Extracting","id":"1"}`, 1000)))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			said := 0
			_, err := b.Create(t.Context(), sandbox.Spec{Name: "x", Image: sandbox.Image{Ref: "img"}, Progress: func(string) { said++ }})
			if err != nil || said > 5 {
				t.Errorf("%v, %d messages", err, said)
			}
		})
	}
	wg.Wait()
	if n := f.called(pullCall); n != 1 {
		t.Errorf("%d pulls for eight sandboxes", n)
	}
}
