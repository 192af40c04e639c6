package usernet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	// maxStreams is how many TCP connections a sandbox has at a time, maxOpening
	// how many of them may be waiting for the other end.
	maxStreams = 1024
	maxOpening = 256
	// streamBuffer is what the stack holds of one direction of a connection. It
	// spans the way from kernel to process only; the way across the world is
	// in the socket's buffers. Beyond the first maxWide connections there is
	// narrowBuffer for each.
	streamBuffer = 256 << 10
	narrowBuffer = 64 << 10
	maxWide      = 64
	// chunk is what is copied at once where the stack's buffers cannot be used.
	chunk = 64 << 10
	// dialLimit bounds the time until a connection is answered.
	dialLimit = 15 * time.Second
	// drainLimit is how long the sandbox has to take the last data of a
	// connection.
	drainLimit = 30 * time.Second
	// timeWait keeps the ports of a connection after its end (RFC 9293, section
	// 3.6.1). The link neither delays nor repeats.
	timeWait = time.Second
)

// setBuffers bounds what the stack holds.
func (n *Net) setBuffers() tcpip.Error {
	send := tcpip.TCPSendBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: streamBuffer, Max: streamBuffer}
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: streamBuffer, Max: streamBuffer}
	wait, linger := tcpip.TCPTimeWaitTimeoutOption(timeWait), tcpip.TCPLingerTimeoutOption(drainLimit)
	sack := tcpip.TCPSACKEnabled(true)
	for _, option := range []tcpip.SettableTransportProtocolOption{&send, &receive, &wait, &linger, &sack} {
		if err := n.stack.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			return err
		}
	}
	return nil
}

// openStream answers a SYN of the sandbox once the other end has.
func (n *Net) openStream(r *tcp.ForwarderRequest) {
	id := r.ID()
	to := netip.AddrPortFrom(addrOf(id.LocalAddress), id.LocalPort)
	ctx, place, ok := n.begin(&n.streams, maxStreams)
	if !ok {
		r.Complete(true)
		return
	}
	defer n.done(&n.streams)
	up, err := n.dialStream(ctx, to)
	if err != nil {
		r.Complete(true)
		return
	}
	defer func() { _ = up.Close() }()
	s := &stream{up: up}
	var terr tcpip.Error
	s.ep, terr = r.CreateEndpoint(&s.queue)
	r.Complete(terr != nil)
	if terr != nil {
		return
	}
	if place > maxWide {
		s.narrow()
	}
	s.carry(ctx)
}

func (n *Net) dialStream(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	if !isResolver(to) {
		if n.refused(to.Addr()) {
			return nil, fmt.Errorf("connecting to %s: not reached", to)
		}
		return n.outside.Dial(ctx, "tcp", to)
	}
	var errs []error
	for _, server := range n.outside.NameServers() {
		c, err := n.outside.Dial(ctx, "tcp", server)
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(append(errs, errors.New("no name server answers"))...)
}

// stream joins a connection of the sandbox with one outside.
type stream struct {
	ep    tcpip.Endpoint
	queue waiter.Queue
	up    net.Conn
}

// narrow makes the buffers of both connections small.
func (s *stream) narrow() {
	s.ep.SocketOptions().SetSendBufferSize(narrowBuffer, true)
	s.ep.SocketOptions().SetReceiveBufferSize(narrowBuffer, true)
	if c, ok := s.up.(*net.TCPConn); ok {
		_ = c.SetReadBuffer(narrowBuffer) // it works with the larger ones too
		_ = c.SetWriteBuffer(narrowBuffer)
	}
}

// carry copies both ways until both have ended, either has failed, or ctx ends.
func (s *stream) carry(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		_ = s.up.Close()
		s.ep.Abort()
	})
	var up sync.WaitGroup
	up.Go(func() {
		if s.copyUp() != nil || closeWrite(s.up) != nil {
			cancel()
		}
	})
	if s.copyDown() != nil || s.ep.Shutdown(tcpip.ShutdownWrite) != nil {
		cancel()
	}
	up.Wait()
	s.drain(ctx)
	if !stop() {
		<-ended
	}
	s.ep.Close()
}

// drain waits until the sandbox has all that was sent to it, so that no
// connection holds memory that is not counted.
func (s *stream) drain(ctx context.Context) {
	entry, changed := waiter.NewChannelEntry(waiter.EventHUp | waiter.EventErr)
	s.queue.EventRegister(&entry)
	defer s.queue.EventUnregister(&entry)
	limit := time.NewTimer(drainLimit)
	defer limit.Stop()
	switch tcp.EndpointState(s.ep.State()) {
	case tcp.StateClose, tcp.StateError, tcp.StateTimeWait:
		return
	}
	select {
	case <-changed:
	case <-ctx.Done():
	case <-limit.C:
		s.ep.Abort()
	}
}

// closeWrite tells the other end that no more comes; a connection that cannot
// say so is at its end then.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	if err := c.Close(); err != nil {
		return fmt.Errorf("closing a connection: %w", err)
	}
	return nil
}

// copyUp sends on what comes from the sandbox until that ends.
func (s *stream) copyUp() error {
	entry, readable := waiter.NewChannelEntry(waiter.ReadableEvents)
	s.queue.EventRegister(&entry)
	defer s.queue.EventUnregister(&entry)
	out := newSink(s.up)
	for {
		terr, err := out.fill(s.ep)
		if err != nil {
			return err
		}
		switch terr.(type) {
		case nil:
		case *tcpip.ErrWouldBlock:
			<-readable
		case *tcpip.ErrClosedForReceive:
			return nil
		default:
			return errors.New(terr.String())
		}
	}
}

// copyDown sends to the sandbox what comes from outside until that ends.
func (s *stream) copyDown() error {
	entry, writable := waiter.NewChannelEntry(waiter.WritableEvents)
	s.queue.EventRegister(&entry)
	defer s.queue.EventUnregister(&entry)
	in := newSource(s.up)
	for {
		terr, err := in.empty(s.ep)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch terr.(type) {
		case nil:
		case *tcpip.ErrWouldBlock:
			<-writable
		default:
			return errors.New(terr.String())
		}
	}
}

// sink is where a connection of the sandbox is emptied into.
type sink interface {
	// fill takes what the endpoint has; the stack's error is apart.
	fill(tcpip.Endpoint) (tcpip.Error, error)
}

// source is what a connection of the sandbox is filled from.
type source interface {
	// empty waits for data and gives the endpoint as much as it takes.
	empty(tcpip.Endpoint) (tcpip.Error, error)
}

// copySink and copySource work with every connection.
type copySink struct {
	up  net.Conn
	buf []byte
}

func (c *copySink) fill(ep tcpip.Endpoint) (tcpip.Error, error) {
	// Read holds the endpoint's lock, so that nothing may wait in it.
	w := tcpip.SliceWriter(c.buf)
	res, terr := ep.Read(&w, tcpip.ReadOptions{})
	if res.Count > 0 {
		_, err := c.up.Write(c.buf[:res.Count])
		return nil, err
	}
	return terr, nil
}

type copySource struct {
	up   net.Conn
	buf  []byte
	left []byte // of buf
	err  error  // after left
}

func (c *copySource) empty(ep tcpip.Endpoint) (tcpip.Error, error) {
	if len(c.left) == 0 {
		if c.err != nil {
			return nil, c.err
		}
		var n int
		n, c.err = c.up.Read(c.buf)
		c.left = c.buf[:n]
		if n == 0 {
			return nil, c.err
		}
	}
	n, terr := ep.Write(bytes.NewReader(c.left), tcpip.WriteOptions{})
	c.left = c.left[n:]
	return terr, nil
}
