package usernet

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
)

// newSink and newSource let the stack's buffers be read and written by the
// kernel where the connection is a socket: bytes are copied once.
func newSink(c net.Conn) sink {
	if raw, ok := rawConn(c); ok {
		return &socketSink{raw: raw}
	}
	return &copySink{up: c, buf: make([]byte, chunk)}
}

func newSource(c net.Conn) source {
	if raw, ok := rawConn(c); ok {
		return &socketSource{raw: raw}
	}
	return &copySource{up: c, buf: make([]byte, chunk)}
}

func rawConn(c net.Conn) (syscall.RawConn, bool) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return nil, false
	}
	raw, err := t.SyscallConn()
	return raw, err == nil
}

type socketSink struct {
	raw syscall.RawConn
	fd  int // while fill is at it
	err error
}

func (s *socketSink) fill(ep tcpip.Endpoint) (terr tcpip.Error, err error) {
	err = s.raw.Write(func(fd uintptr) bool {
		s.fd, s.err = int(fd), nil
		var res tcpip.ReadResult
		res, terr = ep.Read(s, tcpip.ReadOptions{})
		full := errors.Is(s.err, unix.EAGAIN)
		if res.Count > 0 || s.err != nil {
			terr = nil // it comes again
		}
		return !full
	})
	if err == nil && s.err != nil && !errors.Is(s.err, unix.EAGAIN) {
		err = os.NewSyscallError("write", s.err)
	}
	return terr, err
}

// Write takes as much as the socket does without waiting.
func (s *socketSink) Write(p []byte) (done int, err error) {
	for done < len(p) && s.err == nil {
		n, err := unix.Write(s.fd, p[done:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		done, s.err = done+max(n, 0), err
	}
	return done, s.err
}

type socketSource struct {
	raw  syscall.RawConn
	fd   int // while empty is at it
	have int // bytes that can be read without waiting
}

func (s *socketSource) empty(ep tcpip.Endpoint) (terr tcpip.Error, err error) {
	var end error
	err = s.raw.Read(func(fd uintptr) bool {
		s.fd = int(fd)
		if s.have, end = available(s.fd); errors.Is(end, unix.EAGAIN) {
			end = nil
			return false
		}
		if end == nil {
			_, terr = ep.Write(s, tcpip.WriteOptions{})
		}
		return true
	})
	return terr, errors.Join(err, end)
}

// available waits for nothing: it returns how much there is, io.EOF, EAGAIN or
// what went wrong with the connection.
func available(fd int) (int, error) {
	n, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
	if err != nil || n > 0 {
		return n, os.NewSyscallError("ioctl", err)
	}
	var b [1]byte
	for {
		n, _, err := unix.Recvfrom(fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, os.NewSyscallError("recv", err)
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// Len is how much the stack may ask for.
func (s *socketSource) Len() int { return s.have }

// Read fills p: the stack asks for no more than there is.
func (s *socketSource) Read(p []byte) (done int, err error) {
	for done < len(p) && s.have > 0 {
		n, err := unix.Read(s.fd, p[done:min(len(p), done+s.have)])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return done, os.NewSyscallError("read", err)
		case n == 0:
			return done, io.ErrUnexpectedEOF
		}
		done, s.have = done+n, s.have-n
	}
	return done, nil
}
