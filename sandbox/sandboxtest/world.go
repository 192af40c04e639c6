package sandboxtest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"

	"github.com/proctor-run/proctor/sandbox/egress"
)

// World stands for the network outside: host names that lead to local servers
// of a test, and nothing else. The zero value is empty.
type World struct {
	mu    sync.Mutex
	names map[string]netip.Addr
	addrs map[netip.Addr]string
	own   map[netip.Addr]bool
	// datagrams leads to the servers of UDP.
	datagrams map[netip.Addr]string
	server    netip.AddrPort // of names, once there is one
}

// Put lets a name resolve to an address of its own, which leads to a server
// that listens on addr.
func (w *World) Put(name, addr string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.names == nil {
		w.names, w.addrs = map[string]netip.Addr{}, map[netip.Addr]string{}
	}
	outside, ok := w.names[name]
	if !ok {
		n := len(w.names) + 1
		outside = netip.AddrFrom4([4]byte{198, 18, byte(n >> 8), byte(n)}) // RFC 2544: for tests
	}
	w.names[name], w.addrs[outside] = outside, addr
}

// PutAddr lets an address lead to a server that listens on addr.
func (w *World) PutAddr(outside netip.Addr, addr string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.addrs == nil {
		w.names, w.addrs = map[string]netip.Addr{}, map[netip.Addr]string{}
	}
	w.addrs[outside] = addr
}

// PutOwn makes an address one of this machine's, that leads to a server which
// listens on addr.
func (w *World) PutOwn(own netip.Addr, addr string) {
	w.PutAddr(own, addr)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.own == nil {
		w.own = map[netip.Addr]bool{}
	}
	w.own[own] = true
}

// Address is what a name that was Put resolves to.
func (w *World) Address(name string) netip.Addr {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.names[name]
}

// Serve puts a web server into the world that answers "hello from NAME".
func (w *World) Serve(t testing.TB, name string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(rw, "hello from "+name+"\n")
	}))
	t.Cleanup(s.Close)
	w.Put(name, s.Listener.Addr().String())
}

// Upstream is what an egress proxy reaches the world through.
func (w *World) Upstream() egress.Upstream {
	return egress.Upstream{
		// The addresses of the world are not those of this machine's networks.
		Own: func(addr netip.Addr) bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.own[addr]
		},
		Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if addr, ok := w.names[host]; ok {
				return []netip.Addr{addr}, nil
			}
			return nil, fmt.Errorf("%q is not in the test's world", host)
		},
		Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			return w.dial(ctx, "tcp", to)
		},
		DialUDP: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			return w.dial(ctx, "udp", to)
		},
		NameServers: func() []netip.AddrPort {
			w.mu.Lock()
			defer w.mu.Unlock()
			if !w.server.IsValid() {
				return nil
			}
			return []netip.AddrPort{w.server}
		},
	}
}

func (w *World) dial(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	addr, ok := w.addrs[to.Addr()]
	if network == "udp" {
		addr, ok = w.datagrams[to.Addr()]
	}
	if to == w.server {
		addr, ok = to.String(), true
	}
	w.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("%s is not in the test's world", to)
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}
