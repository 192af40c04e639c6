package fake

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/proctor-run/proctor/sandbox"
)

// Listen listens on this machine's loopback interface, where the functions that
// are commands can connect. It is as the ability Listener of package egress wants
// it: the end of the sandbox, a Reset, a Snapshot and a KillTree since an older mark
// end it.
func (s *Sandbox) Listen(ctx context.Context) (net.Listener, error) {
	var d *door
	err := s.do(ctx, &Call{Op: OpListen}, func() error {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("listening on the loopback interface: %w", err)
		}
		d = &door{Listener: l, sandbox: s, conns: map[*doorConn]struct{}{}}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.state != running {
			_ = l.Close()
			return sandbox.ErrDestroyed
		}
		s.born++
		d.number = s.born
		s.doors[d] = struct{}{}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// door is a listener that closes its connections too.
type door struct {
	net.Listener
	sandbox *Sandbox
	number  int // among the processes, in the order of birth

	mu     sync.Mutex
	closed bool
	conns  map[*doorConn]struct{}
}

// Accept waits for a connection.
func (d *door) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	if err != nil {
		return nil, fmt.Errorf("accepting a connection from a fake sandbox: %w", err)
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		_ = c.Close()
		return nil, fmt.Errorf("accepting a connection of type %T", c)
	}
	in := &doorConn{TCPConn: tcp, door: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = tcp.Close()
		return nil, net.ErrClosed
	}
	d.conns[in] = struct{}{}
	return in, nil
}

// Close ends Accept and all connections.
func (d *door) Close() error {
	d.sandbox.mu.Lock()
	delete(d.sandbox.doors, d)
	d.sandbox.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	for c := range d.conns {
		_ = c.TCPConn.Close()
	}
	if err := d.Listener.Close(); err != nil {
		return fmt.Errorf("closing a listener of a fake sandbox: %w", err)
	}
	return nil
}

// doorConn is a connection that came in.
type doorConn struct {
	*net.TCPConn
	door *door
}

func (c *doorConn) Close() error {
	c.door.mu.Lock()
	delete(c.door.conns, c)
	c.door.mu.Unlock()
	if err := c.TCPConn.Close(); err != nil {
		return fmt.Errorf("closing a connection of a fake sandbox: %w", err)
	}
	return nil
}

func anyDoor(*door) bool { return true }

// shut closes the listeners that match.
func (s *Sandbox) shut(match func(*door) bool) {
	s.mu.Lock()
	var hit []*door
	for d := range s.doors {
		if match(d) {
			hit = append(hit, d)
		}
	}
	s.mu.Unlock()
	for _, d := range hit {
		_ = d.Close()
	}
}
