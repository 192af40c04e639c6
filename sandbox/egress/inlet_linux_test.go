package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/sandbox"
)

// listen starts an inlet that belongs to no others.
func listen(ctx context.Context, o ListenOptions) (*Inlet, error) {
	i := newInlet(o)
	if err := i.start(ctx); err != nil {
		return nil, err
	}
	return i, nil
}

// openInlet is closed, and awaited, when the test ends.
func openInlet(t testing.TB, in *inside) *Inlet {
	t.Helper()
	l, err := listen(t.Context(), ListenOptions{Exec: in.exec, Relay: []string{"guest", "relay"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = l.Close()
		if err := l.Wait(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return l
}

// meet is a connection from both sides: the program's and ours.
func meet(t testing.TB, l *Inlet) (program *net.TCPConn, ours net.Conn) {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ours, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ours.Close() })
	return c.(*net.TCPConn), ours
}

func TestAnHTTPServerServesPrograms(t *testing.T) {
	t.Parallel()
	in := &inside{}
	l := openInlet(t, in)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s%s %s", body, r.Method, r.URL.Path)
	})}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	dialed := 0
	tr := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		dialed++
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
	client := &http.Client{Transport: tr}
	for i := range 20 {
		resp, err := client.Post(fmt.Sprintf("http://%s/%d", l.Addr(), i), "", strings.NewReader(strings.Repeat("x", i*4000)))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if want := strings.Repeat("x", i*4000) + fmt.Sprintf("POST /%d", i); err != nil || string(body) != want {
			t.Fatalf("request %d: got %d bytes, %v; want %d", i, len(body), err, len(want))
		}
	}
	if dialed != 1 {
		t.Errorf("20 requests took %d connections, want one that is kept alive", dialed)
	}
	tr.CloseIdleConnections()
	// A whole answer arrives also where the server closes right after it.
	for range 20 {
		req, _ := http.NewRequest(http.MethodGet, "http://"+l.Addr().String()+"/"+strings.Repeat("y", 3000), nil)
		req.Close = true
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || len(body) != len("GET /")+3000 {
			t.Errorf("got %d bytes, %v", len(body), err)
		}
	}
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("Serve: %v", err)
	}
}

func TestAHandlerLearnsThatItsProgramIsGone(t *testing.T) {
	t.Parallel()
	l := openInlet(t, &inside{})
	begun, gone := make(chan struct{}), make(chan struct{})
	srv := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		close(gone)
	})}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-begun
	_ = c.Close()
	<-gone
	_ = srv.Close()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("Serve: %v", err)
	}
}

func TestAnInletIsBesideTheProxyAndEachOther(t *testing.T) {
	t.Parallel()
	in := &inside{}
	g, _ := openGate(t, Options{Exec: in.exec})
	a, b := openInlet(t, in), openInlet(t, in)
	ports := []string{strings.TrimPrefix(g.Env()[0], "HTTP_PROXY=http://"), a.Addr().String(), b.Addr().String()}
	slices.Sort(ports)
	if len(slices.Compact(ports)) != 3 {
		t.Errorf("they listen on %q", ports)
	}
	for _, addr := range ports {
		if !strings.HasPrefix(addr, "127.0.0.1:") {
			t.Errorf("it listens on %q", addr)
		}
	}
}

func TestTheRelayOfAnInletIsAskedForAPortOfItsOwn(t *testing.T) {
	t.Parallel()
	mine := errors.New("mine")
	var seen sandbox.Command
	relay := []string{"guest", "relay", "x"}[:2:3]
	_, err := listen(t.Context(), ListenOptions{Relay: relay, Exec: func(_ context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
		seen = cmd
		return sandbox.ExitStatus{}, mine
	}})
	if !errors.Is(err, mine) {
		t.Errorf("got %v, want why the relay did not start", err)
	}
	if !slices.Equal(seen.Argv, []string{"guest", "relay", "61081"}) || seen.User != "0:0" {
		t.Errorf("started %q as %q", seen.Argv, seen.User)
	}
}

func TestCloseEndsAcceptAndConnections(t *testing.T) {
	t.Parallel()
	in := &inside{}
	l := openInlet(t, in)
	c, ours := meet(t, l)
	accepted := make(chan error, 1)
	go func() { _, err := l.Accept(); accepted <- err }()
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := <-accepted; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: got %v, want net.ErrClosed", err)
	}
	if err := l.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the program's connection is open")
	}
	if _, err := ours.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("our connection: got %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: got %v", err)
	}
}

func TestAcceptSaysThatTheRelayIsGone(t *testing.T) {
	t.Parallel()
	in := &inside{}
	l := openInlet(t, in)
	_, ours := meet(t, l)
	in.kill()
	_, err := l.Accept()
	if err == nil || !strings.Contains(err.Error(), "the relay in the sandbox is gone") || !strings.Contains(err.Error(), "code 9") {
		t.Errorf("got %v", err)
	}
	if _, err := ours.Read(make([]byte, 1)); err == nil {
		t.Error("a connection outlives the relay")
	}
	if err := l.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAConnectionThatWasClosedIsClosed(t *testing.T) {
	t.Parallel()
	l := openInlet(t, &inside{})
	c, ours := meet(t, l)
	if _, err := io.WriteString(ours, "bye"); err != nil {
		t.Fatal(err)
	}
	_ = ours.Close()
	if got, err := io.ReadAll(c); err != nil || string(got) != "bye" {
		t.Errorf("the program got %q, %v", got, err)
	}
	if _, err := ours.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read: got %v", err)
	}
	if _, err := ours.Write(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write: got %v", err)
	}
	if ours.LocalAddr().String() != l.Addr().String() || ours.RemoteAddr() == nil {
		t.Errorf("addresses %v and %v", ours.LocalAddr(), ours.RemoteAddr())
	}
}

func TestInletsEndWithTheirSandbox(t *testing.T) {
	t.Parallel()
	in, all := &inside{}, &Inlets{}
	o := ListenOptions{Exec: in.exec}
	var open []net.Listener
	for range 3 {
		l, err := all.Listen(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, l)
	}
	all.Shut()
	if err := all.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	for _, l := range open {
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept: got %v", err)
		}
	}
	if _, err := all.Listen(t.Context(), o); !errors.Is(err, sandbox.ErrDestroyed) {
		t.Errorf("Listen: got %v, want ErrDestroyed", err)
	}
}

func TestInletsEndOneThatIsBeingStarted(t *testing.T) {
	t.Parallel()
	all, started := &Inlets{}, make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		_, err := all.Listen(t.Context(), ListenOptions{Exec: func(ctx context.Context, _ sandbox.Command) (sandbox.ExitStatus, error) {
			close(started)
			<-ctx.Done()
			return sandbox.ExitStatus{}, ctx.Err()
		}})
		failed <- err
	}()
	<-started
	all.Shut()
	if err := all.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, sandbox.ErrDestroyed) {
		t.Errorf("Listen: got %v, want ErrDestroyed", err)
	}
}

func TestInletsForgetThoseThatAreOver(t *testing.T) {
	t.Parallel()
	in, all := &inside{}, &Inlets{}
	for range 10 {
		l, err := all.Listen(t.Context(), ListenOptions{Exec: in.exec})
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		if err := l.(*Inlet).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(all.all) != 1 {
		t.Errorf("%d are remembered, want the last", len(all.all))
	}
}

// TestAnInletLeavesNothing: with connections under way, waiting and never
// accepted, all goroutines end.
func TestAnInletLeavesNothing(t *testing.T) { //nolint:paralleltest // it counts what the process has
	before := runtime.NumGoroutine()
	l, err := listen(t.Context(), ListenOptions{Exec: (&inside{}).exec})
	if err != nil {
		t.Fatal(err)
	}
	var conns []net.Conn
	for range 20 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	for range 10 {
		if _, err := l.Accept(); err != nil {
			t.Fatal(err)
		}
	}
	_ = l.Close()
	if err := l.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	for _, c := range conns {
		_ = c.Close()
	}
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			buf := make([]byte, 64<<10)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}

// BenchmarkInlet compares a GET on a connection that is kept alive, by a program
// in a sandbox to a server in this program, with the same GET without the relay. A
// sandbox's own cost comes on top.
func BenchmarkInlet(b *testing.B) {
	handler := http.HandlerFunc(hello)
	get := func(b *testing.B, url string) {
		tr := &http.Transport{}
		defer tr.CloseIdleConnections()
		client := &http.Client{Transport: tr}
		var took []time.Duration
		for b.Loop() {
			begun := time.Now()
			resp, err := client.Get(url)
			if err != nil {
				b.Fatal(err)
			}
			_, err = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if err != nil || resp.StatusCode != http.StatusOK {
				b.Fatalf("got %d, %v", resp.StatusCode, err)
			}
			took = append(took, time.Since(begun))
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-µs")
	}
	b.Run("direct", func(b *testing.B) {
		web := httptest.NewServer(handler)
		defer web.Close()
		get(b, web.URL)
	})
	b.Run("inside", func(b *testing.B) {
		l := openInlet(b, &inside{})
		srv := &http.Server{Handler: handler}
		served := make(chan error, 1)
		go func() { served <- srv.Serve(l) }()
		get(b, "http://"+l.Addr().String())
		_ = srv.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			b.Errorf("Serve: %v", err)
		}
	})
}
