package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/egress/tunnel"
)

// Listener is the ability of a sandbox that programs in it reach a server in this
// program, whatever else they reach, to be found with [sandbox.As].
type Listener interface {
	// Listen returns where connections to its address come in, which is one of the
	// sandbox's loopback interface ("127.0.0.1:PORT"). Every program and user of the
	// sandbox can connect, and where a backend's sandboxes share the machine's network,
	// of which it warns, everything on the machine can: a server that must know who
	// asks has to ask for a secret.
	//
	// Accept fails when the sandbox is destroyed or reset, or when a program inside has
	// killed what carries the connections; the way is then over, and Listen may be
	// called again. Close ends the connections too. Ending processes with a mark that
	// is older than the listener ends it.
	//
	// ErrUnsupported says that this sandbox cannot, ErrDestroyed that it is gone.
	Listen(ctx context.Context) (net.Listener, error)
}

// ListenOptions of an Inlet.
type ListenOptions struct {
	// Exec runs a command in the sandbox, as sandbox.Sandbox has it, with an
	// environment that does not matter.
	Exec ExecFunc
	// Relay is the guest program in the sandbox with its argument.
	Relay []string
}

// Inlet is where connections come in that programs in a sandbox made: a listener
// on its loopback interface. A relay inside carries them.
type Inlet struct {
	link  *link
	addr  *net.TCPAddr
	conns chan *inletConn

	mu   sync.Mutex
	err  error         // why no connection comes in any more
	over chan struct{} // closed when err is set
}

var _ net.Listener = (*Inlet)(nil)

func newInlet(o ListenOptions) *Inlet {
	argv := append(slices.Clone(o.Relay), strconv.Itoa(tunnel.ServerPort))
	return &Inlet{link: newLink(o.Exec, argv), conns: make(chan *inletConn), over: make(chan struct{})}
}

func (i *Inlet) start(ctx context.Context) error {
	// A connection can come in before start returns, and addr is set.
	started := make(chan struct{})
	take := func(s *tunnel.Stream) {
		<-started
		i.take(s)
	}
	lost := func(why error) {
		i.end(fmt.Errorf("the relay in the sandbox is gone, so that nothing can connect: %w", why))
	}
	if err := i.link.start(ctx, take, lost); err != nil {
		return fmt.Errorf("starting the relay of a listener in the sandbox: %w", err)
	}
	i.addr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(i.link.port)}
	close(started)
	return nil
}

// take hands a connection to Accept, unless it is over before.
func (i *Inlet) take(s *tunnel.Stream) {
	select {
	case i.conns <- &inletConn{Stream: s, addr: i.addr}:
	case <-i.over:
		_ = s.Close()
	case <-s.Context().Done():
	}
}

func (i *Inlet) end(why error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.err == nil {
		i.err = why
		close(i.over)
	}
}

// Accept waits for a connection. What was written to it before it was closed
// still arrives. Its RemoteAddr has no port: which one a program has is not known.
func (i *Inlet) Accept() (net.Conn, error) {
	select {
	case <-i.over: // before a connection that has come in as well
	default:
		select {
		case c := <-i.conns:
			return c, nil
		case <-i.over:
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return nil, i.err
}

// Addr is the address inside the sandbox.
func (i *Inlet) Addr() net.Addr { return i.addr }

// Close ends Accept and all connections and lets the relay end. It does not wait
// for the relay, and may be called repeatedly.
func (i *Inlet) Close() error {
	i.end(net.ErrClosed)
	i.link.stop()
	return nil
}

// Wait returns when the relay has ended and all connections with it, which Close
// or the end of the sandbox makes sure of.
func (i *Inlet) Wait(ctx context.Context) error {
	if err := i.link.wait(ctx); err != nil {
		return fmt.Errorf("waiting for the relay of a listener in the sandbox: %w", err)
	}
	return nil
}

// inletConn is a connection that a program in a sandbox made.
type inletConn struct {
	*tunnel.Stream
	addr *net.TCPAddr
}

var _ net.Conn = (*inletConn)(nil)

func (c *inletConn) Read(p []byte) (int, error) {
	n, err := c.Stream.Read(p)
	return n, closed(err)
}

func (c *inletConn) Write(p []byte) (int, error) {
	n, err := c.Stream.Write(p)
	return n, closed(err)
}

// closed makes the error of a connection that was closed here that of package net.
func closed(err error) error {
	if errors.Is(err, tunnel.ErrClosed) {
		return net.ErrClosed
	}
	return err
}

// Close closes as the kernel's connections do.
func (c *inletConn) Close() error { return c.Finish() }

func (c *inletConn) LocalAddr() net.Addr { return c.addr }

func (c *inletConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: c.addr.IP} }

// Inlets are the inlets of one sandbox, and end with it. The zero value has none.
type Inlets struct {
	mu   sync.Mutex
	shut bool
	all  []*Inlet // whose relays may run
}

// Listen adds one. After Shut it gives sandbox.ErrDestroyed.
func (i *Inlets) Listen(ctx context.Context, o ListenOptions) (net.Listener, error) {
	in := newInlet(o)
	i.mu.Lock()
	if i.shut {
		i.mu.Unlock()
		return nil, sandbox.ErrDestroyed
	}
	i.all = slices.DeleteFunc(i.all, func(old *Inlet) bool { return old.link.over() })
	i.all = append(i.all, in)
	i.mu.Unlock()
	err := in.start(ctx)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.shut {
		return nil, sandbox.ErrDestroyed // and it is closed with the others
	}
	if err != nil {
		return nil, err
	}
	return in, nil
}

// Close closes those that there are. Others may be added afterwards.
func (i *Inlets) Close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.close()
}

// Shut closes them all.
func (i *Inlets) Shut() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.shut = true
	i.close()
}

func (i *Inlets) close() {
	for _, in := range i.all {
		_ = in.Close()
	}
}

// Wait returns after Shut when nothing of them is left.
func (i *Inlets) Wait(ctx context.Context) error {
	i.mu.Lock()
	all := i.all
	i.mu.Unlock()
	for _, in := range all {
		if err := in.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}
