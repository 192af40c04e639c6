package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// answers are the words in which a protocol says how a tunnel's beginning
// went.
type answers interface {
	denied(*visit)
	failed(*visit, error)
	connected() error
}

// tunnel joins the client with a host.
func (s *session) tunnel(ctx context.Context, t target, say answers) {
	if socks, ok := say.(socksAnswers); ok {
		socks.client = s.client
		say = socks
	}
	v := s.proxy.decide(ctx, t)
	defer v.finish()
	if !v.allowed {
		say.denied(v)
		return
	}
	up, err := v.connect()
	switch {
	case err != nil && !v.allowed:
		say.denied(v)
		return
	case err != nil:
		say.failed(v, err)
		return
	}
	if say.connected() == nil {
		s.splice(v, up)
	}
}

// splice copies both ways until both have ended, or either has failed.
func (s *session) splice(v *visit, up net.Conn) {
	idle := time.AfterFunc(idleLimit, func() { v.cancel(errIdle) })
	defer idle.Stop()
	touch := func() { idle.Reset(idleLimit) }
	// Whatever ends the visit ends both connections.
	closed := make(chan struct{})
	stop := context.AfterFunc(v.ctx, func() {
		defer close(closed)
		_ = up.Close()
		_ = s.client.Close()
	})
	var down sync.WaitGroup
	down.Go(func() {
		if copyAll(s.client, up, touch) != nil || s.client.CloseWrite() != nil {
			v.cancel(nil)
		}
	})
	err := s.upward(v, up, touch)
	if err != nil {
		v.cancel(nil)
	} else if c, ok := up.(*counted); ok {
		c.closeWrite()
	}
	down.Wait()
	if !stop() {
		<-closed
	}
}

// upward sends the client's data on, once its first words are checked.
func (s *session) upward(v *visit, up net.Conn, touch func()) error {
	var first []byte
	buf := make([]byte, 4<<10)
	for {
		n, err := s.in.Read(buf)
		touch()
		first = append(first, buf[:n]...)
		name, unread := firstWords(first, err != nil)
		if errors.Is(unread, errShortHello) {
			continue
		}
		if unread != nil {
			v.allowed, v.reason = false, unread.Error()
			return unread
		}
		if name != "" {
			if denied := v.checkName(name); denied != nil {
				v.allowed, v.reason = false, denied.Error()
				return denied
			}
		}
		if len(first) > 0 {
			if _, err := up.Write(first); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading from the client: %w", err)
		}
		return copyAll(up, s.in, touch)
	}
}

// firstWords is the server name in what a client says first, empty where there is none;
// over says that it says no more. errShortHello asks for more, any other error is a
// reason not to send it on.
func firstWords(first []byte, over bool) (string, error) {
	name, err := serverName(first)
	if !errors.Is(err, errShortHello) {
		return name, err
	}
	like, _ := likeTLS(first)
	switch {
	case over && like:
		return "", fmt.Errorf("%w: it ends before its end", errNoHello)
	case over:
		return "", nil
	case len(first) > 2*maxHello: // in very many small records
		return "", errLongHello
	}
	return "", errShortHello
}

var copyBuffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// copyAll copies until src ends, which is no error.
func copyAll(dst io.Writer, src io.Reader, touch func()) error {
	buf, _ := copyBuffers.Get().(*[bufferSize]byte)
	defer copyBuffers.Put(buf)
	for {
		n, err := src.Read(buf[:])
		if n > 0 {
			touch()
			if _, err := dst.Write(buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
