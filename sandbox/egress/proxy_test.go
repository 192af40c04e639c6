package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
)

// world is an upstream in which names lead to local servers.
type world struct {
	mu    sync.Mutex
	names map[string]netip.Addr // what resolves
	addrs map[netip.Addr]string // where an address leads
	asked []string
}

func newWorld() *world {
	return &world{names: map[string]netip.Addr{}, addrs: map[netip.Addr]string{}}
}

// put gives a listening address a name.
func (w *world) put(name, addr string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	public := netip.AddrFrom4([4]byte{203, 0, 113, byte(len(w.names) + 1)})
	w.names[name], w.addrs[public] = public, addr
}

// nowhere is this machine's own.
func nowhere(netip.Addr) bool { return false }

func (w *world) upstream() Upstream {
	return Upstream{
		Own: nowhere,
		Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.asked = append(w.asked, host)
			if addr, ok := w.names[host]; ok {
				return []netip.Addr{addr}, nil
			}
			return nil, errors.New("no such host")
		},
		Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			w.mu.Lock()
			addr, ok := w.addrs[to.Addr()]
			w.mu.Unlock()
			if !ok {
				return nil, fmt.Errorf("%s cannot be reached", to)
			}
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		},
	}
}

// served is a proxy with a listener in front of it.
type served struct {
	*Proxy
	addr string
	log  *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// lines are the log's, which is complete once the proxy is closed.
func (s *served) lines(t testing.TB) []Line {
	t.Helper()
	s.Close()
	var all []Line
	dec := json.NewDecoder(bytes.NewReader(s.log.Bytes()))
	for dec.More() {
		var l Line
		if err := dec.Decode(&l); err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}

func serve(t testing.TB, policy Policy, up Upstream) *served {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &served{addr: l.Addr().String(), log: &lockedBuffer{}}
	s.Proxy = NewProxy(policy, up, s.log, nil)
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { s.Serve(context.Background(), c.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		s.Close()
		conns.Wait()
	})
	return s
}

func allow(hosts ...string) Policy { return Policy{Mode: sandbox.NetworkAllowlist, Hosts: hosts} }

func (s *served) client(t testing.TB) *http.Client {
	t.Helper()
	tr := &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: s.addr}),
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func hello(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, _ = fmt.Fprintf(w, "%s %s host=%s ua=%q proxy=%q len=%d", r.Method, r.URL, r.Host, r.Header.Get("User-Agent"), r.Header.Get("Proxy-Connection"), len(body))
}

func get(t testing.TB, c *http.Client, url string) (int, string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatalf("getting %s: %v", url, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("getting %s: %v", url, err)
	}
	return resp.StatusCode, string(body)
}

func TestPlainRequestsAreForwarded(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(hello))
	t.Cleanup(web.Close)
	w := newWorld()
	w.put("good.test", web.Listener.Addr().String())
	s := serve(t, allow("good.test"), w.upstream())
	c := s.client(t)
	for range 3 { // on one connection
		code, body := get(t, c, "http://good.test:8080/a?b=c")
		if code != 200 || !strings.HasPrefix(body, `GET /a?b=c host=good.test:8080 ua="Go-http-client`) || !strings.Contains(body, `proxy=""`) {
			t.Errorf("got %d %q", code, body)
		}
	}
	resp, err := c.Post("http://good.test/p", "text/plain", io.LimitReader(neverEnding('x'), 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if !strings.HasSuffix(string(body), "len=1048576") {
		t.Errorf("got %q", body)
	}
	if code, body := get(t, c, "http://bad.test/"); code != 403 || !strings.Contains(body, `"bad.test" is denied: not in allowed_hosts`) {
		t.Errorf("a host that is not listed: got %d %q", code, body)
	}
	lines := s.lines(t)
	if len(lines) != 5 {
		t.Fatalf("got %d lines: %+v", len(lines), lines)
	}
	if l := lines[0]; l.Host != "good.test" || l.Port != 8080 || !l.Allowed || l.Reason != "in allowed_hosts" || l.BytesUp == 0 || l.BytesDown == 0 || l.Time.IsZero() {
		t.Errorf("got %+v", l)
	}
	if l := lines[3]; l.BytesUp < 1<<20 {
		t.Errorf("got %+v", l)
	}
	if l := lines[4]; l.Host != "bad.test" || l.Port != 80 || l.Allowed || l.Reason != "not in allowed_hosts" || l.BytesUp != 0 || l.BytesDown != 0 {
		t.Errorf("got %+v", l)
	}
	if slices.Contains(w.asked, "bad.test") {
		t.Error("a name that is not allowed was resolved")
	}
}

type neverEnding byte

func (b neverEnding) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

func TestTunnels(t *testing.T) {
	t.Parallel()
	web := httptest.NewUnstartedServer(http.HandlerFunc(hello))
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.StartTLS()
	t.Cleanup(web.Close)
	w := newWorld()
	w.put("good.test", web.Listener.Addr().String())
	w.put("also.test", web.Listener.Addr().String())
	s := serve(t, allow("good.test", "also.test"), w.upstream())
	if code, body := get(t, s.client(t), "https://good.test/x"); code != 200 || !strings.HasPrefix(body, "GET /x host=good.test") {
		t.Errorf("got %d %q", code, body)
	}
	resp, err := s.client(t).Get("https://bad.test/x")
	if err == nil {
		_ = resp.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("a host that is not listed: got %v", err)
	}
	fronting := func(name string) error {
		c, code := s.connect(t, "good.test:443")
		if code != 200 {
			t.Fatalf("CONNECT: got %d", code)
		}
		return tls.Client(c, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
	}
	if err := fronting("also.test"); err != nil {
		t.Errorf("another server name that is allowed: %v", err)
	}
	if err := fronting("evil.test"); err == nil {
		t.Error("a server name that is not allowed passes")
	}
	lines := s.lines(t)
	if n := len(lines); n != 4 {
		t.Fatalf("got %d lines: %+v", n, lines)
	}
	i := slices.IndexFunc(lines, func(l Line) bool {
		return strings.Contains(l.Reason, `TLS server name "evil.test" is not in allowed_hosts`)
	})
	if i < 0 || lines[i].Allowed || lines[i].BytesUp != 0 {
		t.Errorf("got %+v", lines)
	}
}

// connect asks for a tunnel.
func (s *served) connect(t testing.TB, to string) (*bufferedConn, int) {
	t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_, _ = fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: ignored.test\r\n\r\n", to)
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close() // of a tunnel it is empty
	return &bufferedConn{Conn: c, r: r}, resp.StatusCode
}

type bufferedConn struct {
	net.Conn
	r *bufio.Reader
}

func (c *bufferedConn) Read(p []byte) (int, error) { return c.r.Read(p) }

// echo is a server that speaks first, then repeats what it hears.
func echo(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				_, _ = io.WriteString(c, "hi\n")
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

func TestAServerMaySpeakFirst(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.put("echo.test", echo(t))
	s := serve(t, allow("*.test"), w.upstream())
	c, code := s.connect(t, "ECHO.test.:7")
	if code != 200 {
		t.Fatalf("got %d", code)
	}
	if line, err := c.r.ReadString('\n'); err != nil || line != "hi\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	_, _ = io.WriteString(c, "ping")
	_ = c.Conn.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(c); err != nil || string(got) != "ping" {
		t.Errorf("got %q, %v", got, err)
	}
	if l := s.lines(t)[0]; l.BytesUp != 4 || l.BytesDown != 7 || l.Host != "echo.test" || l.Port != 7 {
		t.Errorf("got %+v", l)
	}
}

func TestSOCKS(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.put("echo.test", echo(t))
	s := serve(t, allow("echo.test", "203.0.113.1"), w.upstream())
	ask := func(kind byte, addr string) (net.Conn, byte) {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_, _ = io.WriteString(c, "\x05\x02\x00\x02\x05\x01\x00"+string(kind)+addr+"\x00\x07")
		var reply [12]byte
		if _, err := io.ReadFull(c, reply[:]); err != nil {
			t.Fatal(err)
		}
		return c, reply[3]
	}
	for kind, addr := range map[byte]string{socksName: "\x09echo.test", socksIPv4: "\xcb\x00\x71\x01"} {
		c, code := ask(kind, addr)
		if code != socksOK {
			t.Fatalf("type %d: got %d", kind, code)
		}
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || line != "hi\n" {
			t.Errorf("got %q, %v", line, err)
		}
	}
	if _, code := ask(socksName, "\x09evil.test"); code != socksDenied {
		t.Errorf("a host that is not listed: got %d", code)
	}
	if _, code := ask(9, "xx"); code != socksNoAddrType {
		t.Errorf("an unknown type of address: got %d", code)
	}
}

func TestThisMachineIsNotReached(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(hello))
	t.Cleanup(web.Close)
	local := netip.MustParseAddrPort(web.Listener.Addr().String())
	up := Upstream{Lookup: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{local.Addr(), netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("::ffff:127.0.0.1")}, nil
	}}
	for _, policy := range []Policy{allow("rebinding.test", "127.0.0.1"), {}} {
		s := serve(t, policy, up)
		for _, host := range []string{"rebinding.test", "127.0.0.1", "[::ffff:127.0.0.1]"} {
			code, body := get(t, s.client(t), fmt.Sprintf("http://%s:%d/", host, local.Port()))
			if code != 403 || !strings.Contains(body, "one of this machine") {
				t.Errorf("%s: got %d %q", host, code, body)
			}
			if _, code := s.connect(t, fmt.Sprintf("%s:%d", host, local.Port())); code != 403 {
				t.Errorf("%s: CONNECT: got %d", host, code)
			}
		}
		for _, l := range s.lines(t) {
			if l.Allowed || !strings.Contains(l.Reason, "no sandbox reaches") {
				t.Errorf("got %+v", l)
			}
		}
	}
	up.Local = true
	s := serve(t, allow("rebinding.test"), up)
	if code, body := get(t, s.client(t), fmt.Sprintf("http://rebinding.test:%d/", local.Port())); code != 200 {
		t.Errorf("with Local: got %d %q", code, body)
	}
}

func TestHostHeadersDecideNothing(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(hello))
	t.Cleanup(web.Close)
	w := newWorld()
	w.put("good.test", web.Listener.Addr().String())
	s := serve(t, allow("good.test"), w.upstream())
	for request, want := range map[string]string{
		"GET http://bad.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n":           "403",
		"GET http://good.test/ HTTP/1.1\r\nHost: bad.test\r\n\r\n":           "200",
		"GET http://good.test@bad.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n": "403",
		"GET http://good.test/ HTTP/1.0\r\n\r\n":                             "200",
		"GET / HTTP/1.1\r\nHost: good.test\r\n\r\n":                          "400",
		"GET https://good.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n":         "400",
		"CONNECT bad.test:443 HTTP/1.1\r\nHost: good.test:443\r\n\r\n":       "403",
		"CONNECT good.test HTTP/1.1\r\nHost: good.test:443\r\n\r\n":          "400",
		"CONNECT /good.test:443 HTTP/1.1\r\nHost: good.test:443\r\n\r\n":     "400",
		"GET http://nowhere/ HTTP/1.1\r\nHost: x\r\n\r\n":                    "403",
		"nonsense\r\n\r\n": "400",
		"GET http://good.test/ HTTP/1.1\r\nA: " + strings.Repeat("a", 1<<17): "431",
	} {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, request)
		line, err := bufio.NewReader(c).ReadString('\n')
		_ = c.Close()
		if err != nil || !strings.HasPrefix(line, "HTTP/1.1 "+want) {
			t.Errorf("%.60q: got %q, %v; want %s", request, line, err, want)
		}
	}
}

func TestWhatIsNotAllowedAnyMoreIsClosed(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.put("a.test", echo(t))
	w.put("b.test", echo(t))
	s := serve(t, Policy{}, w.upstream())
	a, _ := s.connect(t, "a.test:1")
	b, _ := s.connect(t, "b.test:1")
	for _, c := range []*bufferedConn{a, b} {
		if line, err := c.r.ReadString('\n'); line != "hi\n" {
			t.Fatalf("got %q, %v", line, err)
		}
	}
	s.SetPolicy(allow("b.test"))
	if _, err := a.r.ReadByte(); err == nil {
		t.Error("the connection to a host that is not allowed any more is open")
	}
	_, _ = io.WriteString(b, "x")
	if got, err := b.r.ReadByte(); got != 'x' {
		t.Errorf("the connection to a host that still is allowed: got %q, %v", got, err)
	}
	s.SetPolicy(Policy{Mode: sandbox.NetworkNone})
	if _, err := b.r.ReadByte(); err == nil {
		t.Error("without network a connection is open")
	}
	if _, code := s.connect(t, "b.test:1"); code != 403 {
		t.Errorf("without network: got %d", code)
	}
	s.SetPolicy(Policy{})
	if _, code := s.connect(t, "b.test:1"); code != 200 {
		t.Errorf("public again: got %d", code)
	}
	lines := s.lines(t)
	for host, why := range map[string]string{"a.test": "closed: the network policy changed", "b.test": "closed: the sandbox is being destroyed"} {
		if !slices.ContainsFunc(lines, func(l Line) bool { return l.Host == host && strings.Contains(l.Reason, why) }) {
			t.Errorf("no line says that %s was %s: %+v", host, why, lines)
		}
	}
}

func TestAHostThatAnswersEarlyOrStreams(t *testing.T) {
	t.Parallel()
	more := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/early":
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		case "/stream":
			_, _ = io.WriteString(w, "first\n")
			w.(http.Flusher).Flush()
			<-more
			_, _ = io.WriteString(w, "second\n")
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	t.Cleanup(web.Close)
	w := newWorld()
	w.put("good.test", web.Listener.Addr().String())
	s := serve(t, allow("good.test"), w.upstream())
	c := s.client(t)
	resp, err := c.Get("http://good.test/stream")
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(resp.Body)
	if line, err := r.ReadString('\n'); line != "first\n" {
		t.Errorf("got %q, %v", line, err)
	}
	close(more)
	if line, err := r.ReadString('\n'); line != "second\n" {
		t.Errorf("got %q, %v", line, err)
	}
	_ = resp.Body.Close()
	if resp, err := c.Post("http://good.test/early", "", io.LimitReader(neverEnding('x'), 64<<20)); err == nil {
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("got %d", resp.StatusCode)
		}
	}
	for _, method := range []string{"GET", "HEAD"} {
		req, _ := http.NewRequest(method, "http://good.test/empty", nil)
		resp, err := c.Do(req)
		if err != nil || resp.StatusCode != 204 {
			t.Fatalf("%s: got %v, %v", method, resp, err)
		}
		_ = resp.Body.Close()
	}
}

func TestAHostThatCannotBeReached(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.names["dead.test"] = netip.MustParseAddr("203.0.113.200")
	s := serve(t, allow("dead.test", "lost.test"), w.upstream())
	if code, body := get(t, s.client(t), "http://dead.test/"); code != 502 || !strings.Contains(body, "cannot be reached") {
		t.Errorf("got %d %q", code, body)
	}
	if code, body := get(t, s.client(t), "http://lost.test/"); code != 502 || !strings.Contains(body, "no such host") {
		t.Errorf("got %d %q", code, body)
	}
	for _, l := range s.lines(t) {
		if !l.Allowed || l.Reason == "in allowed_hosts" {
			t.Errorf("got %+v", l)
		}
	}
}

func TestCloseEndsADialUnderWay(t *testing.T) {
	t.Parallel()
	dialing, ended := make(chan struct{}), make(chan error, 1)
	s := serve(t, Policy{}, Upstream{
		Own: nowhere,
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("203.0.113.1")}, nil
		},
		Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			close(dialing)
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		},
	})
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, _ = io.WriteString(c, "CONNECT slow.test:1 HTTP/1.1\r\n\r\n")
	<-dialing
	s.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) { // and not at the dial's own limit
		t.Errorf("the dial ended with %v", err)
	}
}

// FuzzRequest feeds the proxy what programs may send; nothing that is not
// listed is ever dialled.
func FuzzRequest(f *testing.F) {
	f.Add([]byte("GET http://good.test/ HTTP/1.1\r\nHost: x\r\n\r\n"))
	f.Add([]byte("CONNECT good.test:443 HTTP/1.1\r\n\r\nabc"))
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x03\x09good.test\x00\x50abc"))
	f.Add([]byte("POST http://good.test/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		up := Upstream{
			Own: nowhere,
			Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
				if host != "good.test" {
					t.Errorf("%q is resolved", host)
				}
				return []netip.Addr{netip.MustParseAddr("203.0.113.1")}, nil
			},
			Dial: func(_ context.Context, to netip.AddrPort) (net.Conn, error) {
				if to.Addr() != netip.MustParseAddr("203.0.113.1") {
					t.Errorf("%s is dialled", to)
				}
				return nil, errors.New("not now")
			},
		}
		p := NewProxy(allow("good.test"), up, io.Discard, nil)
		p.Serve(context.Background(), &script{Reader: bytes.NewReader(in)})
		p.Close()
	})
}

// script is a client that has said all it will say.
type script struct{ *bytes.Reader }

func (*script) Write(p []byte) (int, error) { return len(p), nil }
func (*script) Close() error                { return nil }
func (*script) CloseWrite() error           { return nil }
