package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/proctor-run/proctor/sandbox/internal/frames"
)

var (
	// errReset is returned by a stream that the other side has given up.
	errReset = errors.New("connection reset")
	// errClosed is returned by a stream after its Close.
	errClosed = errors.New("connection closed")
)

// Stream is one connection. Reading, writing and closing may happen
// concurrently, but only one goroutine reads and one writes.
type Stream struct {
	mux    *Mux
	id     uint32
	ctx    context.Context // ends with the stream
	cancel context.CancelFunc
	in     *frames.Inbox
	credit *frames.Credit

	// The reader's.
	payload []byte // the whole of a frame, to be given back
	rest    []byte // what is not read of it yet
	atEnd   bool   // all of the other side's data is read

	mu     sync.Mutex
	inEnd  bool  // the other side sends no more
	outEnd bool  // this side sends no more
	err    error // why both directions are over
}

func newStream(m *Mux, id uint32) *Stream {
	s := &Stream{mux: m, id: id, in: frames.NewInbox(Window), credit: frames.NewCredit(Window)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Context ends when the other side has given the stream up, or it was closed.
func (s *Stream) Context() context.Context { return s.ctx }

// Read reads what has come, and returns io.EOF at the end.
func (s *Stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(s.rest) == 0 && !s.atEnd {
		f, _ := s.in.Pop(s.ctx.Done(), nil)
		s.payload, s.rest, s.atEnd = f.Payload, f.Payload, f.Type == frameEnd
	}
	if err := s.failure(); err != nil {
		return 0, err
	}
	if s.atEnd {
		return 0, io.EOF
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	if len(s.rest) == 0 {
		grant := s.in.Consumed(len(s.payload))
		s.mux.pool.Put(s.payload)
		s.payload = nil
		if grant > 0 {
			// When the pipe is broken the next Read says so.
			_ = s.mux.w.SendCredit(frameCredit, s.id, grant)
		}
	}
	return n, nil
}

// failure is why both directions are over, or nil. The stream's context does
// not end before it is set.
func (s *Stream) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Write sends p as far as the other side has room for it, and returns when all
// is sent.
func (s *Stream) Write(p []byte) (int, error) {
	sent := 0
	for len(p) > 0 {
		n := s.credit.Take(min(len(p), maxPayload), nil, nil)
		if n == 0 {
			if err := s.failure(); err != nil {
				return sent, err
			}
			return sent, errClosed
		}
		if err := s.mux.w.Send(frameData, s.id, p[:n]); err != nil {
			return sent, fmt.Errorf("sending on a stream: %w", err)
		}
		sent += n
		p = p[n:]
	}
	return sent, nil
}

// CloseWrite ends this side's direction: the other side reads an end of file.
func (s *Stream) CloseWrite() error {
	s.mu.Lock()
	if s.err != nil || s.outEnd {
		s.mu.Unlock()
		return nil
	}
	s.outEnd = true
	over := s.inEnd
	s.mu.Unlock()
	s.credit.Close()
	if over { // before the other side knows and opens another stream
		s.mux.release(s)
	}
	if err := s.mux.w.Send(frameEnd, s.id, nil); err != nil {
		return fmt.Errorf("ending a stream: %w", err)
	}
	return nil
}

// Close ends the stream. What the other side has not read yet may be lost,
// unless both sides have ended their directions before.
func (s *Stream) Close() error {
	if !s.fail(errClosed) {
		return nil
	}
	s.mux.release(s)
	if err := s.mux.w.Send(frameReset, s.id, nil); err != nil {
		return fmt.Errorf("closing a stream: %w", err)
	}
	return nil
}

// fail ends both directions; it reports whether the other side does not know
// yet.
func (s *Stream) fail(err error) bool {
	s.mu.Lock()
	failed, over := s.err != nil, s.inEnd && s.outEnd
	if !failed {
		s.err = err
	}
	s.mu.Unlock()
	s.cancel()
	s.credit.Close()
	s.in.Drop()
	return !failed && !over
}

// end notes that the other side sends no more.
func (s *Stream) end(f frames.Frame) (over bool) {
	s.in.End(f)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inEnd = true
	return s.outEnd
}
