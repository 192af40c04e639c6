package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/proctor-run/proctor/sandbox/internal/frames"
)

var (
	// errReset is returned by a stream that the other side has given up.
	errReset = errors.New("connection reset")
	// ErrClosed is returned by a stream that was closed on this side.
	ErrClosed = errors.New("connection closed")
)

// Stream is one connection. Its methods may be called concurrently.
//
// Waiting for the other side's program, to send or to read, ends at the
// deadlines. What they do not end is waiting for a relay that reads nothing of
// its pipe any more: that ends with the pipe.
type Stream struct {
	mux    *Mux
	id     uint32
	ctx    context.Context // ends with the stream
	cancel context.CancelFunc
	in     *frames.Inbox
	credit *frames.Credit

	readLimit, writeLimit deadline

	reading sync.Mutex // held by the one that reads, guards the next three
	payload []byte     // the whole of a frame, to be given back
	rest    []byte     // what is not read of it yet
	atEnd   bool       // all of the other side's data is read

	writing sync.Mutex // held by the one that writes

	left chan struct{} // closed when the other side reads no more, but for what it sent

	mu     sync.Mutex
	inEnd  bool  // the other side sends no more
	outEnd bool  // this side sends no more
	err    error // why both directions are over
}

func newStream(m *Mux, id uint32) *Stream {
	s := &Stream{
		mux: m, id: id, in: frames.NewInbox(Window), credit: frames.NewCredit(Window),
		readLimit: newDeadline(), writeLimit: newDeadline(), left: make(chan struct{}),
	}
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
	s.reading.Lock()
	defer s.reading.Unlock()
	passed, late := s.readLimit.wait(), false
	switch {
	case isClosed(passed):
		late = true
	case len(s.rest) == 0 && !s.atEnd:
		f, ok := s.in.Pop(s.ctx.Done(), passed)
		s.payload, s.rest, s.atEnd = f.Payload, f.Payload, f.Type == frameEnd
		late = !ok // or over, which failure tells
	}
	if err := s.failure(); err != nil {
		return 0, err
	}
	switch {
	case late:
		return 0, os.ErrDeadlineExceeded
	case s.atEnd:
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
	s.writing.Lock()
	defer s.writing.Unlock()
	sent := 0
	for len(p) > 0 {
		n := 0
		if passed := s.writeLimit.wait(); !isClosed(passed) {
			n = s.credit.Take(min(len(p), maxPayload), passed, nil)
		}
		if n == 0 {
			more, err := s.unsent(len(p))
			return sent + more, err
		}
		if err := s.mux.w.Send(frameData, s.id, p[:n]); err != nil {
			return sent, fmt.Errorf("sending on a stream: %w", err)
		}
		sent += n
		p = p[n:]
	}
	return sent, nil
}

// unsent says why nothing of n more bytes is sent, and how many of them count as
// sent all the same.
func (s *Stream) unsent(n int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return 0, s.err
	case isClosed(s.left):
		return n, nil // nobody reads it, but what was sent before still arrives
	case s.outEnd:
		return 0, ErrClosed
	}
	return 0, os.ErrDeadlineExceeded
}

// SetDeadline sets both deadlines.
func (s *Stream) SetDeadline(t time.Time) error {
	s.readLimit.set(t)
	s.writeLimit.set(t)
	return nil
}

// SetReadDeadline sets when a Read, one under way included, gives
// os.ErrDeadlineExceeded; the zero time is never. It loses nothing of what has
// come.
func (s *Stream) SetReadDeadline(t time.Time) error {
	s.readLimit.set(t)
	return nil
}

// SetWriteDeadline sets when a Write, one under way included, gives
// os.ErrDeadlineExceeded; the zero time is never. What it says that was sent is
// sent.
func (s *Stream) SetWriteDeadline(t time.Time) error {
	s.writeLimit.set(t)
	return nil
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
func (s *Stream) Close() error { return s.close(frameReset) }

// Finish ends the stream as closing a socket does: what was written still
// arrives, and what the other side sends is lost. The outer side alone has it.
func (s *Stream) Finish() error { return s.close(frameFinish) }

func (s *Stream) close(how frames.Type) error {
	if !s.fail(ErrClosed) {
		return nil
	}
	s.mux.release(s)
	// Pipes that take nothing any more have ended the stream on the other side too.
	_ = s.mux.w.Send(how, s.id, nil)
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
	s.readLimit.set(time.Time{}) // no timer holds what is over
	s.writeLimit.set(time.Time{})
	return !failed && !over
}

// finished notes that the other side has ended the stream with Finish.
func (s *Stream) finished() (over bool) {
	s.mu.Lock()
	if !isClosed(s.left) {
		close(s.left)
	}
	s.mu.Unlock()
	s.credit.Close()
	return s.end(frames.Frame{Type: frameEnd})
}

// end notes that the other side sends no more.
func (s *Stream) end(f frames.Frame) (over bool) {
	s.in.End(f)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inEnd = true
	return s.outEnd
}
