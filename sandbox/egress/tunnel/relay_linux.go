package tunnel

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/bounded"
)

// Relay listens on 127.0.0.1, on the port or where that is taken on any, and
// carries the connections that it accepts to the other ends of r and w, until r
// ends. It uses no package net, which would make the guest program start slower.
func Relay(r io.Reader, w io.Writer, preferred uint16) error {
	l, port, err := listen(int(preferred))
	if errors.Is(err, unix.EADDRINUSE) {
		l, port, err = listen(0)
	}
	if err != nil {
		return fmt.Errorf("listening on the loopback interface: %w", err)
	}
	if _, err := w.Write(hello(port).Encode()); err != nil {
		return errors.Join(fmt.Errorf("greeting: %w", err), l.Close())
	}
	m := newMux(r, w, true)
	var conns sync.WaitGroup
	conns.Go(func() { accept(m, l, &conns) })
	err = m.Run()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	err = errors.Join(err, l.Close())
	conns.Wait()
	return err
}

func listen(port int) (*os.File, uint16, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, 0, os.NewSyscallError("socket", err)
	}
	fail := func(err error) (*os.File, uint16, error) { return nil, 0, errors.Join(err, unix.Close(fd)) }
	// A relay that is started again must not wait for the old connections.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return fail(os.NewSyscallError("setsockopt", err))
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return fail(os.NewSyscallError("bind", err))
	}
	if err := unix.Listen(fd, maxStreams); err != nil {
		return fail(os.NewSyscallError("listen", err))
	}
	addr, err := unix.Getsockname(fd)
	if err != nil {
		return fail(os.NewSyscallError("getsockname", err))
	}
	in, ok := addr.(*unix.SockaddrInet4)
	if !ok {
		return fail(fmt.Errorf("listening on an address of type %T", addr))
	}
	return os.NewFile(uintptr(fd), "listener"), uint16(in.Port), nil
}

// accept carries connections until the listener is closed.
func accept(m *Mux, l *os.File, conns *sync.WaitGroup) {
	free := make(chan struct{}, maxStreams)
	for {
		select {
		case free <- struct{}{}:
		case <-m.over:
			return
		}
		c, err := acceptOne(l)
		if err != nil {
			return
		}
		conns.Go(func() {
			defer func() { <-free }()
			carry(m, c)
		})
	}
}

func acceptOne(l *os.File) (*os.File, error) {
	raw, err := l.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("accepting: %w", err)
	}
	for {
		fd := -1
		var accepted error
		if err := raw.Read(func(lfd uintptr) bool {
			fd, _, accepted = unix.Accept4(int(lfd), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
			return !errors.Is(accepted, unix.EAGAIN)
		}); err != nil {
			return nil, fmt.Errorf("accepting: %w", err)
		}
		switch {
		case accepted == nil:
			_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
			return os.NewFile(uintptr(fd), "connection"), nil
		case errors.Is(accepted, unix.EINTR), errors.Is(accepted, unix.ECONNABORTED):
		default:
			return nil, os.NewSyscallError("accept4", accepted)
		}
	}
}

// carry joins a connection and a stream until both directions have ended.
func carry(m *Mux, c *os.File) {
	defer func() { _ = c.Close() }()
	s, err := m.open()
	if err != nil {
		return
	}
	defer func() { _ = s.Close() }()
	var out sync.WaitGroup
	sent := make(chan struct{}) // closed when nothing more comes from the program
	out.Go(func() { deliver(c, s, sent) })
	if _, err := bounded.CopyBuffer(s, c, make([]byte, maxPayload)); err != nil {
		_ = s.Close()
	} else {
		_ = s.CloseWrite()
	}
	close(sent)
	out.Wait()
}

// deliver gives the program what comes from outside, to the end of both
// directions.
func deliver(c *os.File, s *Stream, sent <-chan struct{}) {
	if _, err := bounded.CopyBuffer(c, s, make([]byte, maxPayload)); err != nil {
		reset(c)
		_ = s.Close()
		return
	}
	shutdown(c)
	select {
	case <-sent:
	case <-s.left:
		_ = c.Close() // nobody would read what the program still sends
	case <-s.ctx.Done():
		reset(c)
	}
}

// reset lets the program see that its connection has not ended in order.
func reset(c *os.File) {
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		})
	}
	_ = c.Close()
}

func shutdown(c *os.File) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_WR) })
}
