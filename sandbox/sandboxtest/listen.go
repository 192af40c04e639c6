package sandboxtest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/egress"
)

// listenObligations are those of egress.Listener.
var listenObligations = []obligation{
	{"a program reaches the server", 0, func(t *testing.T, s *suite) {
		sb := s.shared(t)
		meets(t, s, sb, listen(t, sb))
	}},
	{"a program without network reaches it", noNetwork, func(t *testing.T, s *suite) {
		sb := s.networked(t, sandbox.Network{Mode: sandbox.NetworkNone})
		meets(t, s, sb, listen(t, sb))
	}},
	{"a program with an allow list reaches it beside the proxy", processes | allowlist, func(t *testing.T, s *suite) {
		s.cfg.World.Serve(t, "beside.test")
		sb := s.networked(t, sandbox.Network{Mode: sandbox.NetworkAllowlist, Hosts: []string{"beside.test"}})
		meets(t, s, sb, listen(t, sb))
		reaches(t, sb, sandbox.Command{}, "beside.test")
		if got := output(t, sb, sh(`echo ",$NO_PROXY,$no_proxy,"`)); strings.Count(got, ",127.0.0.1,") != 2 {
			t.Errorf("clients are told to ask the proxy for it: NO_PROXY and no_proxy are %q", got)
		}
	}},
	{"switching the network leaves it alone", switching, func(t *testing.T, s *suite) {
		sb := s.networked(t, sandbox.Network{Mode: sandbox.NetworkPublic, Switchable: true})
		in := listen(t, sb)
		meets(t, s, sb, in)
		for _, mode := range []sandbox.NetworkMode{sandbox.NetworkNone, sandbox.NetworkAllowlist, sandbox.NetworkPublic} {
			switchTo(t, sb, mode)
			meets(t, s, sb, in)
		}
	}},
	{"a program in a hardened sandbox reaches it", hardened | processes, func(t *testing.T, s *suite) {
		sb := s.create(t, s.hardened())
		meets(t, s, sb, listen(t, sb))
	}},
	{"every user reaches it", processes | otherUser, func(t *testing.T, s *suite) {
		sb := s.shared(t)
		in := listen(t, sb)
		answer(t, in, greet)
		if got := output(t, sb, sandbox.Command{Shell: hello(in), User: s.cfg.User.Name}); got != helloed {
			t.Errorf("got %q", got)
		}
	}},
	{"several listeners are apart", 0, func(t *testing.T, s *suite) {
		sb := s.shared(t)
		a, b := listen(t, sb), listen(t, sb)
		if a.Addr().String() == b.Addr().String() {
			t.Errorf("both are at %v", a.Addr())
		}
		meets(t, s, sb, b)
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		meets(t, s, sb, a)
	}},
	{"several connections are open at once", processes, func(t *testing.T, s *suite) {
		const many = 20
		sb := s.shared(t)
		in := listen(t, sb)
		var all sync.WaitGroup
		all.Add(many)
		answer(t, in, func(c net.Conn) error {
			line, err := bufio.NewReader(c).ReadString('\n')
			all.Done()
			all.Wait() // nobody is answered before all are here
			return errors.Join(err, say(c, line))
		})
		got := output(t, sb, sh(connect(in)+fmt.Sprintf(`
for i in {1..%d}; do
	(connect && echo "$i" >&3 && read -r same <&3 && [ "$same" = "$i" ] && echo yes) &
done
wait`, many)))
		if n := strings.Count(got, "yes"); n != many {
			t.Errorf("%d of %d were answered: %q", n, many, got)
		}
	}},
	{"bytes go both ways unharmed", processes, func(t *testing.T, s *suite) {
		const size = 6 << 20
		sb, dir := s.shared(t), s.dir()
		in := listen(t, sb)
		came := sha256.New()
		served := answer(t, in, func(c net.Conn) error {
			if n, err := io.CopyN(c, io.TeeReader(c, came), size); err != nil {
				return fmt.Errorf("after %d bytes: %w", n, err)
			}
			return nil
		})
		sums := output(t, sb, sh(connect(in)+fmt.Sprintf(`
mkdir -p %[1]s && head -c %[2]d /dev/urandom >%[1]s/sent && connect || exit
cat %[1]s/sent >&3 &
head -c %[2]d <&3 >%[1]s/got; wait
sha256sum <%[1]s/sent; sha256sum <%[1]s/got`, dir, size)))
		served()
		want := fmt.Sprintf("%x  -", came.Sum(nil))
		if sums != want+"\n"+want {
			t.Errorf("the server read %s; sent and received:\n%s", want, sums)
		}
	}},
	{"the server ends its direction, and the program goes on", processes, func(t *testing.T, s *suite) {
		sb := s.shared(t)
		in := listen(t, sb)
		var late []byte
		served := answer(t, in, func(c net.Conn) error {
			half, ok := c.(interface{ CloseWrite() error })
			if !ok {
				return errors.New("the connection has no CloseWrite")
			}
			err := errors.Join(say(c, "all\n"), half.CloseWrite())
			var readErr error
			late, readErr = io.ReadAll(c)
			return errors.Join(err, readErr)
		})
		if got := output(t, sb, sh(connect(in)+"connect && cat <&3 && echo late >&3")); got != "all" {
			t.Errorf("the program read %q", got)
		}
		if served(); string(late) != "late\n" {
			t.Errorf("the server read %q", late)
		}
	}},
	{"a program ends its direction, and the server goes on", processes, func(t *testing.T, s *suite) {
		sb := s.shared(t)
		in := listen(t, sb)
		if r := exec(t, sb, sh("perl -MIO::Socket::INET -e 1")); r.Code != 0 {
			t.Skip("the image has no perl with sockets")
		}
		answer(t, in, func(c net.Conn) error {
			all, err := io.ReadAll(c)
			return errors.Join(err, say(c, "got "+string(all)))
		})
		script := fmt.Sprintf(`perl -MIO::Socket::INET -e '
			$c = IO::Socket::INET->new("%s") or die "connecting: $@";
			print $c "ping"; $c->flush; shutdown($c, 1); print <$c>;'`, in.Addr())
		if got := output(t, sb, sh(script)); got != "got ping" {
			t.Errorf("the program read %q", got)
		}
	}},
	{"what was written before a connection is closed arrives", processes, func(t *testing.T, s *suite) {
		const size = 100 << 10 // less than is under way at a time
		sb := s.shared(t)
		in := listen(t, sb)
		answer(t, in, func(c net.Conn) error {
			_, err := c.Write(make([]byte, size))
			return err
		})
		if got := output(t, sb, sh(connect(in)+"for i in 1 2 3; do connect && wc -c <&3; done")); got != strings.TrimSpace(strings.Repeat(fmt.Sprintln(size), 3)) {
			t.Errorf("the program read %q bytes, want %d each time", got, size)
		}
	}},
	{"a web server answers requests on one connection", processes, func(t *testing.T, s *suite) {
		sb := s.shared(t)
		in := listen(t, sb)
		var opened atomic.Int64
		srv := &http.Server{
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				_, _ = fmt.Fprintf(w, "%s %s %q\n", r.Method, r.URL.Path, body)
			}),
			ConnContext: func(ctx context.Context, _ net.Conn) context.Context { opened.Add(1); return ctx },
		}
		serving := make(chan error, 1)
		go func() { serving <- srv.Serve(in) }()
		got := output(t, sb, sh(connect(in)+`
ask() {
	printf '%s HTTP/1.1\r\nHost: server\r\nContent-Length: %d\r\n\r\n%s' "$1" "${#2}" "$2" >&3
	local line length=0
	while read -r line <&3; do
		line=${line%$'\r'}
		[ -n "$line" ] || break
		case ${line,,} in content-length:*) length=${line##* } ;; esac
	done
	head -c "$length" <&3
}
connect && ask 'GET /1' && ask 'POST /2' body && ask 'GET /3'`))
		if want := "GET /1 \"\"\nPOST /2 \"body\"\nGET /3 \"\""; got != want || opened.Load() != 1 {
			t.Errorf("got %q on %d connections, want %q on one", got, opened.Load(), want)
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-serving; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	}},
	{"Close ends a connection that is open inside, and lets no further one in", processes, func(t *testing.T, s *suite) {
		sb := s.shared(t)
		in := listen(t, sb)
		u := start(t, call(t), sb, sh(connect(in)+"connect && echo ready && cat <&3; echo over; while connect 2>/dev/null; do sleep 0.05; done; echo shut"))
		u.untilReady(t)
		if _, err := in.Accept(); err != nil {
			t.Fatal(err)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		u.wait(t)
		if got := u.output(); u.err != nil || !strings.Contains(got, "over\n") || !strings.HasSuffix(got, "shut\n") {
			t.Errorf("error %v, output %q", u.err, got)
		}
	}},
	{"Close ends Accept, repeatedly", 0, func(t *testing.T, s *suite) {
		in := listen(t, s.shared(t))
		end := accepting(in)
		for range 2 {
			if err := in.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		if err := ended(t, end); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept: got %v, want net.ErrClosed", err)
		}
	}},
	{"ending processes that are younger leaves it alone", 0, func(t *testing.T, s *suite) {
		sb := s.shared(t)
		in := listen(t, sb)
		m := mark(t, sb)
		exec(t, sb, sh(ScriptExit3))
		killTree(t, sb, m)
		meets(t, s, sb, in)
		cmd := withGrace(sh(ScriptHang), shortGrace)
		cmd.Timeout = 200 * time.Millisecond
		if r := exec(t, sb, cmd); !r.TimedOut {
			t.Errorf("got %+v", r.ExitStatus)
		}
		meets(t, s, sb, in)
	}},
	{"who kills what carries it ends it, and another can be opened", processes | privateRoot, func(t *testing.T, s *suite) {
		sb := s.fresh(t)
		in := listen(t, sb)
		end := accepting(in)
		output(t, sb, sandbox.Command{Shell: killRelay, User: "0:0"})
		if err := ended(t, end); err == nil || !strings.Contains(err.Error(), "relay in the sandbox is gone") {
			t.Errorf("Accept: got %v, want that the relay is gone", err)
		}
		meets(t, s, sb, listen(t, sb))
	}},
	{"another sandbox does not reach it", processes | noNetwork, func(t *testing.T, s *suite) {
		for _, n := range []sandbox.Network{{Mode: sandbox.NetworkNone}, {}} {
			sb, other := s.networked(t, n), s.networked(t, n)
			in := listen(t, sb)
			there := fmt.Sprintf("(echo >/dev/tcp/127.0.0.1/%d) 2>/dev/null", listenHost(t))
			if exec(t, other, sh(there)).Code == 0 {
				continue // on the machine's own network, of which the backend warns
			}
			if r := exec(t, other, sh(connect(in)+"connect 2>/dev/null")); r.Code == 0 {
				t.Errorf("network %q: another sandbox reaches it", n.Mode)
			}
		}
	}},
	{"a Reset ends it, and another can be opened", 0, func(t *testing.T, s *suite) {
		sb := s.fresh(t)
		r, ok := sandbox.As[sandbox.Resetter](sb)
		if !ok {
			t.Skip("the sandbox is no Resetter")
		}
		end := accepting(listen(t, sb))
		if err := r.Reset(call(t)); err != nil {
			t.Fatalf("Reset: %v", err)
		}
		if err := ended(t, end); err == nil {
			t.Error("Accept: no error")
		}
		meets(t, s, sb, listen(t, sb))
	}},
	{"an ended context is returned as its cause", 0, func(t *testing.T, s *suite) {
		sb := s.shared(t)
		listen(t, sb) // or there is nothing to ask
		ctx, cancel := context.WithCancelCause(call(t))
		cancel(errCause)
		l, _ := sandbox.As[egress.Listener](sb)
		if _, err := l.Listen(ctx); !errors.Is(err, errCause) {
			t.Errorf("got %v, want the context's cause", err)
		}
	}},
	{"Destroy ends Accept and connections, and Listen is ErrDestroyed", 0, func(t *testing.T, s *suite) {
		sb := s.fresh(t)
		end := accepting(listen(t, sb))
		if err := sb.Destroy(call(t)); err != nil {
			t.Fatalf("Destroy: %v", err)
		}
		if err := ended(t, end); err == nil {
			t.Error("Accept: no error")
		}
		l, _ := sandbox.As[egress.Listener](sb)
		if _, err := l.Listen(call(t)); !errors.Is(err, sandbox.ErrDestroyed) {
			t.Errorf("Listen: got %v, want ErrDestroyed", err)
		}
	}},
}

// networked makes a sandbox with a network.
func (s *suite) networked(t *testing.T, n sandbox.Network) sandbox.Sandbox {
	t.Helper()
	spec := s.spec()
	spec.Network = n
	return s.create(t, spec)
}

// listen lets programs in a sandbox reach the test, or skips it.
func listen(t *testing.T, sb sandbox.Sandbox) net.Listener {
	t.Helper()
	l, ok := sandbox.As[egress.Listener](sb)
	if !ok {
		t.Skip("the sandbox is no Listener")
	}
	in, err := l.Listen(call(t))
	if errors.Is(err, sandbox.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("Listen: %v", err)
	}
	t.Cleanup(func() { _ = in.Close() })
	if host, _, err := net.SplitHostPort(in.Addr().String()); err != nil || host != "127.0.0.1" {
		t.Fatalf("Addr: got %q, want 127.0.0.1:PORT", in.Addr())
	}
	return in
}

// connect is a bash function that opens file descriptor 3.
func connect(in net.Listener) string {
	_, port, _ := net.SplitHostPort(in.Addr().String())
	return "connect() { exec 3<>/dev/tcp/127.0.0.1/" + port + "; }; "
}

// hello is a script that says something and prints the answer, helloed.
func hello(in net.Listener) string { return connect(in) + "connect && echo hello >&3 && cat <&3" }

const helloed = "you said hello"

// greet answers hello.
func greet(c net.Conn) error {
	line, err := bufio.NewReader(c).ReadString('\n')
	return errors.Join(err, say(c, "you said "+line))
}

func say(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// meets checks that a program in a sandbox reaches the listener. The programs of a
// simulated backend are in this process.
func meets(t *testing.T, s *suite, sb sandbox.Sandbox, in net.Listener) {
	t.Helper()
	served := serveOne(t, in)
	got := ""
	if s.cfg.Simulated {
		c, err := net.Dial("tcp", in.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if err := say(c, "hello\n"); err != nil {
			t.Error(err)
		}
		all, err := io.ReadAll(c)
		if err != nil {
			t.Error(err)
		}
		got = string(bytes.TrimSuffix(all, []byte("\n")))
	} else {
		got = output(t, sb, sh(hello(in)))
	}
	served()
	if got != helloed {
		t.Errorf("at %v: got %q, want %q", in.Addr(), got, helloed)
	}
}

// serveOne answers one connection with greet.
func serveOne(t testing.TB, in net.Listener) (served func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		c, err := in.Accept()
		if err == nil {
			err = errors.Join(greet(c), c.Close())
		}
		done <- err
	}()
	return func() {
		t.Helper()
		if err := ended(t, done); err != nil {
			t.Errorf("the server: %v", err)
		}
	}
}

// answer answers every connection until the listener is closed, which the end of
// the test does; served waits for the end of the first one.
func answer(t testing.TB, in net.Listener, do func(net.Conn) error) (served func()) {
	t.Helper()
	first := make(chan struct{})
	var once sync.Once
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := in.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer func() { once.Do(func() { close(first) }) }()
				if err := errors.Join(do(c), c.Close()); err != nil {
					t.Errorf("the server: %v", err)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = in.Close()
		work.Wait()
	})
	return func() {
		t.Helper()
		select {
		case <-first:
		case <-time.After(limit):
			t.Fatal("the server was not asked, or does not end")
		}
	}
}

// accepting waits for an Accept in the background.
func accepting(in net.Listener) <-chan error {
	end := make(chan error, 1)
	go func() {
		_, err := in.Accept()
		end <- err
	}()
	return end
}

// ended returns the error that comes.
func ended(t testing.TB, end <-chan error) error {
	t.Helper()
	select {
	case err := <-end:
		return err
	case <-time.After(limit):
		t.Fatal("Accept did not return")
		return nil
	}
}
