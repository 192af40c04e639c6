package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/egress/tunnel"
)

// inside runs relays in this process, in the place of a sandbox.
type inside struct {
	mu    sync.Mutex
	stops []func() // one for each relay that was started
}

func (i *inside) exec(_ context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	r, w := io.Pipe()
	stop := func() { _ = w.CloseWithError(io.EOF) }
	i.mu.Lock()
	i.stops = append(i.stops, stop)
	i.mu.Unlock()
	var copied sync.WaitGroup
	copied.Go(func() {
		_, err := io.Copy(w, cmd.Stdin)
		_ = w.CloseWithError(err)
	})
	err := tunnel.Relay(r, cmd.Stdout, tunnel.ProxyPort)
	_ = r.Close()
	if c, ok := cmd.Stdin.(io.Closer); ok {
		_ = c.Close()
	}
	copied.Wait()
	return sandbox.ExitStatus{Code: 9}, err
}

// kill ends the relay that was started last.
func (i *inside) kill() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stops[len(i.stops)-1]()
}

func openGate(t testing.TB, o Options) (*Gate, *lockedBuffer) {
	t.Helper()
	log := &lockedBuffer{}
	o.Log = log
	g, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.Shut()
		if err := g.Wait(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return g, log
}

// through is a client that asks the proxy that the gate's variables name.
func through(t testing.TB, g *Gate) *http.Client {
	t.Helper()
	proxy, err := url.Parse(strings.TrimPrefix(g.Env()[0], "HTTP_PROXY="))
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{Proxy: http.ProxyURL(proxy)}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func TestGate(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(hello))
	t.Cleanup(web.Close)
	w := newWorld()
	w.put("good.test", web.Listener.Addr().String())
	in := &inside{}
	g, log := openGate(t, Options{Exec: in.exec, Policy: allow("good.test"), Upstream: w.upstream()})
	if code, body := get(t, through(t, g), "http://good.test/"); code != 200 {
		t.Errorf("got %d %q", code, body)
	}
	if err := g.SetPolicy(t.Context(), allow("other.test")); err != nil {
		t.Fatal(err)
	}
	if code, _ := get(t, through(t, g), "http://good.test/"); code != 403 {
		t.Errorf("after the switch: got %d", code)
	}
	in.kill()
	g.mu.Lock()
	first := g.link
	g.mu.Unlock()
	<-first.done
	if log.mu.Lock(); !strings.Contains(log.String(), `"reason":"the relay in the sandbox is gone, so that nothing can be reached: it ended with code 9: "`) {
		t.Errorf("the log does not tell that the relay has ended: %s", log.String())
	}
	log.mu.Unlock()
	if resp, err := through(t, g).Get("http://other.test/"); err == nil {
		_ = resp.Body.Close()
		t.Errorf("without a relay: got %d", resp.StatusCode)
	}
	if err := g.SetPolicy(t.Context(), allow("good.test")); err != nil {
		t.Fatal(err)
	}
	if code, body := get(t, through(t, g), "http://good.test/"); code != 200 {
		t.Errorf("with another relay: got %d %q", code, body)
	}
	if len(in.stops) != 2 {
		t.Errorf("started %d times; want 2", len(in.stops))
	}
}

func TestGateThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	mine := errors.New("mine")
	for name, o := range map[string]Options{
		"mine": {Exec: func(context.Context, sandbox.Command) (sandbox.ExitStatus, error) { return sandbox.ExitStatus{}, mine }},
		"not found": {Exec: func(_ context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
			_, _ = io.WriteString(cmd.Stderr, "proctor-guest: not found\n")
			return sandbox.ExitStatus{Code: 127}, nil
		}},
		"says hello": {Exec: func(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
			_, _ = io.WriteString(cmd.Stdout, "it says hello like a person would")
			<-ctx.Done()
			return sandbox.ExitStatus{}, ctx.Err()
		}},
	} {
		if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	hangs, cancel := context.WithCancelCause(t.Context())
	_, err := Open(hangs, Options{Exec: func(ctx context.Context, _ sandbox.Command) (sandbox.ExitStatus, error) {
		cancel(mine)
		<-ctx.Done()
		return sandbox.ExitStatus{}, ctx.Err()
	}})
	if !errors.Is(err, mine) {
		t.Errorf("an ended context: got %v, want its cause", err)
	}
}

func TestGateEnv(t *testing.T) {
	t.Parallel()
	g, _ := openGate(t, Options{Exec: (&inside{}).exec})
	cmd := g.Command(sandbox.Command{Env: []string{"A=b", "no_proxy=later"}}, []string{"NO_PROXY=earlier", "HTTP_PROXY=x"})
	if !slices.Contains(cmd.Env, "NO_PROXY=localhost,127.0.0.1,::1,later") || !slices.Contains(cmd.Env, "no_proxy=localhost,127.0.0.1,::1,later") || cmd.Env[0] != "A=b" {
		t.Errorf("got %q", cmd.Env)
	}
}

// TestGateLeavesNothing: with many connections under way, all goroutines end.
func TestGateLeavesNothing(t *testing.T) { //nolint:paralleltest // it counts what the process has
	before := runtime.NumGoroutine()
	w := newWorld()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var outside sync.WaitGroup
	outside.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			outside.Go(func() { _, _ = io.Copy(c, c); _ = c.Close() })
		}
	})
	w.put("echo.test", l.Addr().String())
	g, err := Open(t.Context(), Options{Exec: (&inside{}).exec, Policy: allow("echo.test"), Upstream: w.upstream()})
	if err != nil {
		t.Fatal(err)
	}
	addr := strings.TrimPrefix(g.Env()[0], "HTTP_PROXY=http://")
	for range 50 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		_, _ = fmt.Fprintf(c, "CONNECT echo.test:1 HTTP/1.1\r\n\r\n")
		if _, err := io.ReadFull(c, make([]byte, 12)); err != nil {
			t.Fatal(err)
		}
	}
	g.Shut()
	if err := g.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	_ = l.Close()
	outside.Wait()
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			buf := make([]byte, 64<<10)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}

// transfer benchmarks what a connection carries: bytes down, and a round trip.
func transfer(b *testing.B, dial func() net.Conn) {
	b.Run("throughput", func(b *testing.B) {
		const size = 8 << 20
		c := dial()
		defer func() { _ = c.Close() }()
		buf := make([]byte, 64<<10)
		b.SetBytes(size)
		for b.Loop() {
			_, _ = c.Write([]byte("M"))
			for left := size; left > 0; {
				n, err := c.Read(buf)
				if err != nil {
					b.Fatal(err)
				}
				left -= n
			}
		}
	})
	b.Run("latency", func(b *testing.B) {
		c := dial()
		defer func() { _ = c.Close() }()
		for b.Loop() {
			_, _ = c.Write([]byte("1"))
			if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("connect", func(b *testing.B) {
		for b.Loop() {
			c := dial()
			_, _ = c.Write([]byte("1"))
			if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
				b.Fatal(err)
			}
			_ = c.Close()
		}
	})
}

// BenchmarkEgress compares a connection through relay and proxy with a direct
// one, on the loopback interface. A sandbox's own cost comes on top.
func BenchmarkEgress(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				many := make([]byte, 8<<20)
				one := make([]byte, 1)
				for {
					if _, err := io.ReadFull(c, one); err != nil {
						return
					}
					if one[0] == 'M' {
						_, _ = c.Write(many)
					} else {
						_, _ = c.Write(one)
					}
				}
			}()
		}
	}()
	w := newWorld()
	w.put("there.test", l.Addr().String())
	g, _ := openGate(b, Options{Exec: (&inside{}).exec, Policy: allow("there.test"), Upstream: w.upstream()})
	proxy := strings.TrimPrefix(g.Env()[0], "HTTP_PROXY=http://")
	dial := func(addr string) net.Conn {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
	b.Run("direct", func(b *testing.B) { transfer(b, func() net.Conn { return dial(l.Addr().String()) }) })
	b.Run("proxied", func(b *testing.B) {
		transfer(b, func() net.Conn {
			c := dial(proxy)
			_, _ = io.WriteString(c, "CONNECT there.test:1 HTTP/1.1\r\n\r\n")
			if _, err := io.ReadFull(c, make([]byte, len("HTTP/1.1 200 Connection Established\r\n\r\n"))); err != nil {
				b.Fatal(err)
			}
			return c
		})
	})
}
