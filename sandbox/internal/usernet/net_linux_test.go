package usernet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/need"
)

// limit is for what is expected to happen.
const limit = time.Minute

// sandboxed is a network namespace with a Net, as a sandbox has it.
type sandboxed struct {
	t    *testing.T
	net  *Net
	work chan func()
}

// newSandboxed makes a namespace and its network.
func newSandboxed(t *testing.T, outside Outside) *sandboxed {
	t.Helper()
	need.Root(t)
	if _, err := os.Stat(TUNPath); err != nil {
		need.That(t, "tun", false, err.Error())
	}
	if outside.Refuse == nil {
		outside.Refuse = func(netip.Addr) bool { return false }
	}
	s := &sandboxed{t: t, work: make(chan func())}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends
		made <- s.enter(outside)
		for f := range s.work {
			f()
		}
	}()
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.net.Close()
		close(s.work)
	})
	return s
}

func (s *sandboxed) enter(outside Outside) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	file, err := MakeDevice(TUNPath, true)
	if err != nil {
		return err
	}
	dev, err := OpenDevice(file)
	if err != nil {
		return err
	}
	s.net, err = New(dev, outside, true)
	return err
}

// inside runs f on a thread in the namespace.
func (s *sandboxed) inside(f func()) {
	done := make(chan struct{})
	s.work <- func() { defer close(done); f() }
	<-done
}

// dial connects from inside.
func (s *sandboxed) dial(network, to string) (c net.Conn, err error) {
	s.inside(func() { c, err = (&net.Dialer{Timeout: limit}).Dial(network, to) })
	if err == nil {
		s.t.Cleanup(func() { _ = c.Close() })
		err = c.SetDeadline(time.Now().Add(limit))
	}
	return c, err
}

// plain hides that a connection is a socket.
type plain struct{ net.Conn }

func (p plain) CloseWrite() error { return p.Conn.(*net.TCPConn).CloseWrite() }

// echoServer sends back what it reads until that ends.
func echoServer(t *testing.T) string {
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
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

// TestStreams carries data both ways at once, by both ways of copying and over
// both kinds of addresses, and ends one direction before the other.
func TestStreams(t *testing.T) {
	t.Parallel()
	server := echoServer(t)
	for name, wrap := range map[string]func(net.Conn) net.Conn{
		"sockets": func(c net.Conn) net.Conn { return c },
		"others":  func(c net.Conn) net.Conn { return plain{c} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan netip.AddrPort, 2)
			s := newSandboxed(t, Outside{Dial: func(ctx context.Context, _ string, to netip.AddrPort) (net.Conn, error) {
				asked <- to
				c, err := (&net.Dialer{}).DialContext(ctx, "tcp", server)
				if err != nil {
					return nil, err
				}
				return wrap(c), nil
			}})
			for _, to := range []string{"192.0.2.1:80", "[2001:db8::1]:443"} {
				c, err := s.dial("tcp", to)
				if err != nil {
					t.Fatal(err)
				}
				if got := <-asked; got.String() != to {
					t.Errorf("dialled %s, want %s", got, to)
				}
				exchange(t, c)
			}
		})
	}
}

// exchange sends data in pieces of all sizes and wants it back.
func exchange(t *testing.T, c net.Conn) {
	t.Helper()
	const size = 4 << 20
	source := rand.New(rand.NewPCG(1, 2))
	sent := make([]byte, size)
	for i := range sent {
		sent[i] = byte(source.Uint32())
	}
	go func() {
		for left := sent; len(left) > 0; {
			n := min(len(left), 1+source.IntN(100_000))
			if _, err := c.Write(left[:n]); err != nil {
				return
			}
			left = left[n:]
		}
		_ = closeWrite(c)
	}()
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("got %d bytes, equal %v, error %v", len(got), bytes.Equal(got, sent), err)
	}
}

// TestRefused: what is refused is not dialled, and the sandbox learns it at once.
func TestRefused(t *testing.T) {
	t.Parallel()
	refused := netip.MustParseAddr("192.0.2.66")
	var dialled atomic.Int64
	s := newSandboxed(t, Outside{
		Refuse: func(a netip.Addr) bool { return a == refused },
		Dial: func(context.Context, string, netip.AddrPort) (net.Conn, error) {
			dialled.Add(1)
			return nil, errors.New("nothing is there")
		},
	})
	// The gateway and the name server serve nothing else.
	for _, to := range []string{"192.0.2.66:80", "[::ffff:192.0.2.66]:80", "10.0.2.2:80", "10.0.2.3:54", "[fd70:726f:6374:2::2]:80", "[fd70:726f:6374:2::99]:80"} {
		if _, err := s.dial("tcp", to); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: %v", to, err)
		}
		c, err := s.dial("udp", to)
		if err != nil {
			t.Errorf("%s: %v", to, err)
			continue
		}
		if _, err := c.Write([]byte("x")); err != nil {
			t.Errorf("%s: %v", to, err)
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s by UDP: %v", to, err)
		}
	}
	if n := dialled.Load(); n != 0 {
		t.Errorf("%d were dialled", n)
	}
	if _, err := s.dial("tcp", "192.0.2.1:80"); !errors.Is(err, syscall.ECONNREFUSED) || dialled.Load() != 1 {
		t.Errorf("a server that is not there: %v, %d dialled", err, dialled.Load())
	}
}

// echoPackets sends datagrams back, after answer has changed them; nil is not
// sent.
func echoPackets(t *testing.T, answer func([]byte) []byte) netip.AddrPort {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	go func() {
		buf := make([]byte, maxDatagram)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			if a := answer(buf[:n]); a != nil {
				_, _ = c.WriteTo(a, from)
			}
		}
	}()
	return c.LocalAddr().(*net.UDPAddr).AddrPort()
}

func dialHost(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, to.String())
}

func TestDatagrams(t *testing.T) {
	t.Parallel()
	server := echoPackets(t, func(p []byte) []byte { return p })
	s := newSandboxed(t, Outside{Dial: func(ctx context.Context, network string, _ netip.AddrPort) (net.Conn, error) {
		return dialHost(ctx, network, server)
	}})
	for _, to := range []string{"192.0.2.1:7", "[2001:db8::1]:7"} {
		c, err := s.dial("udp", to)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, maxDatagram)
		for _, size := range []int{0, 1, 1400, 9000, 65000} { // the last is more than the device's packets hold with IPv6's headers
			sent := bytes.Repeat([]byte{byte(size)}, size)
			if _, err := c.Write(sent); err != nil {
				t.Errorf("%s: %v", to, err)
			}
			if n, err := c.Read(buf); err != nil || !bytes.Equal(buf[:n], sent) {
				t.Errorf("%s: %d bytes sent, got %d, %v", to, size, n, err)
			}
		}
	}
}

// TestOwnAddresses: what comes for an address of the sandbox is its own as soon as
// the device is made, not when the kernel's background work has come to it.
func TestOwnAddresses(t *testing.T) {
	t.Parallel()
	for range 20 {
		s := newSandboxed(t, Outside{})
		for _, own := range []netip.Addr{network4.Addr(), network6.Addr()} {
			var routes []netlink.Route
			var err error
			s.inside(func() { routes, err = netlink.RouteGet(own.AsSlice()) })
			if err != nil || len(routes) != 1 || routes[0].Type != unix.RTN_LOCAL {
				t.Errorf("the route to %s: %v, %v", own, routes, err)
			}
		}
	}
}

// TestNames: the first name server does not answer, and the second also sends
// what nobody asked for.
func TestNames(t *testing.T) {
	t.Parallel()
	silent := echoPackets(t, func([]byte) []byte { return nil })
	knows := echoPackets(t, func(p []byte) []byte {
		if p[2] == 0 {
			return append([]byte{p[0], p[1], 0x80}, p[3:]...)
		}
		return nil
	})
	s := newSandboxed(t, Outside{
		Dial: dialHost, NameServers: func() []netip.AddrPort { return []netip.AddrPort{silent, knows} },
		Refuse: func(netip.Addr) bool { return true }, // which does not concern them
	})
	c, err := s.dial("udp", "10.0.2.3:53")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		query := append([]byte{1, byte(i), 0}, make([]byte, 20)...)
		if _, err := c.Write([]byte("short")); err != nil { // has no answer
			t.Error(err)
		}
		if _, err := c.Write(query); err != nil {
			t.Error(err)
		}
		buf := make([]byte, 100)
		if n, err := c.Read(buf); err != nil || n != len(query) || buf[1] != byte(i) || buf[2] != 0x80 {
			t.Errorf("question %d: got %v, %v", i, buf[:n], err)
		}
	}
}

// TestFloods: a sandbox that opens all it can is bounded, and Close ends it.
func TestFloods(t *testing.T) {
	t.Parallel()
	var streams, flows, most atomic.Int64
	s := newSandboxed(t, Outside{Dial: func(ctx context.Context, network string, _ netip.AddrPort) (net.Conn, error) {
		count := &streams
		if network == "udp" {
			count = &flows
		}
		n := count.Add(1)
		defer count.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	var fds []int
	s.inside(func() {
		for i := range 600 {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Error(err)
				return
			}
			fds = append(fds, fd)
			_ = unix.Connect(fd, &unix.SockaddrInet4{Port: 1 + i, Addr: [4]byte{192, 0, 2, 1}})
		}
	})
	eventually(t, "the most connections", func() bool { return streams.Load() == maxOpening })
	if n := most.Load(); n > maxOpening {
		t.Errorf("%d connections were being opened at a time, at most %d may be", n, maxOpening)
	}
	most.Store(0)
	sent := 0
	flood := func() { // the device loses what comes too fast
		for range 200 {
			sent++
			_ = unix.Sendto(fds[0], []byte("x"), 0, &unix.SockaddrInet4{Port: 1 + sent%2000, Addr: [4]byte{192, 0, 2, 1}})
		}
	}
	s.inside(func() {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Error(err)
		}
		fds = append([]int{fd}, fds...)
	})
	eventually(t, "the most flows", func() bool { flood(); return flows.Load() == maxFlows })
	for range 10 {
		flood()
	}
	if n := most.Load(); n > maxFlows {
		t.Errorf("%d flows at a time, at most %d may be", n, maxFlows)
	}
	s.net.Close()
	if streams.Load() != 0 || flows.Load() != 0 {
		t.Errorf("%d streams and %d flows are left after Close", streams.Load(), flows.Load())
	}
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not reached", what)
		}
	}
}

// TestSetOpen: a network that is shut ends its connections and opens no other.
func TestSetOpen(t *testing.T) {
	t.Parallel()
	server := echoServer(t)
	s := newSandboxed(t, Outside{Dial: func(ctx context.Context, network string, _ netip.AddrPort) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server)
	}})
	c, err := s.dial("tcp", "192.0.2.1:80")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	s.net.SetOpen(false)
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("an open connection: %d bytes, %v", n, err)
	}
	for _, to := range []string{"192.0.2.1:80", "10.0.2.3:53"} {
		if _, err := s.dial("tcp", to); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s while shut: %v", to, err)
		}
	}
	s.net.SetOpen(true)
	if c, err = s.dial("tcp", "192.0.2.1:80"); err != nil {
		t.Fatal(err)
	}
	exchange(t, c)
}

// TestManyStreams: connections that follow one another hold nothing.
func TestManyStreams(t *testing.T) {
	t.Parallel()
	server := echoServer(t)
	s := newSandboxed(t, Outside{Dial: func(ctx context.Context, network string, _ netip.AddrPort) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server)
	}})
	var all sync.WaitGroup
	failed := make(chan error, 400)
	for range 8 {
		all.Go(func() {
			for range 25 {
				c, err := s.dial("tcp", "192.0.2.1:80")
				if err == nil {
					_, err = c.Write([]byte("hello"))
				}
				if err == nil {
					err = closeWrite(c)
				}
				var got []byte
				if err == nil {
					got, err = io.ReadAll(c)
				}
				if err != nil || string(got) != "hello" {
					failed <- fmt.Errorf("got %q: %w", got, err)
				}
				if c != nil {
					_ = c.Close()
				}
			}
		})
	}
	all.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	eventually(t, "no connection", func() bool {
		s.net.mu.Lock()
		defer s.net.mu.Unlock()
		return s.net.streams == 0
	})
}
