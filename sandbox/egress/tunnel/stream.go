package tunnel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

var (
	// ErrReset is returned by a stream that the other side has given up.
	ErrReset = errors.New("connection reset")
	// ErrClosed is returned by a stream after its Close.
	ErrClosed = errors.New("connection closed")
)

// Stream is one connection. Reading, writing and closing may happen
// concurrently, but only one goroutine reads and one writes.
type Stream struct {
	mux    *Mux
	id     uint32
	ctx    context.Context // ends with the stream
	cancel context.CancelFunc

	mu      sync.Mutex
	change  sync.Cond
	in      []byte // not read yet
	base    []byte // the array that in lies in, from its start
	granted int    // what the other side may still send
	pending int    // read and not granted again
	inEnd   bool   // the other side sends no more
	credit  int    // what this side may still send
	outEnd  bool   // this side sends no more
	err     error  // why both directions are over
}

func newStream(m *Mux, id uint32) *Stream {
	s := &Stream{mux: m, id: id, granted: Window, credit: Window}
	s.change.L = &s.mu
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
	s.mu.Lock()
	for len(s.in) == 0 && !s.inEnd && s.err == nil {
		s.change.Wait()
	}
	if s.err != nil {
		defer s.mu.Unlock()
		return 0, s.err
	}
	n := copy(p, s.in)
	if n == 0 {
		s.mu.Unlock()
		return 0, io.EOF
	}
	s.in = s.in[n:]
	s.pending += n
	grant := 0
	if s.pending >= Window/4 && !s.inEnd {
		grant, s.pending = s.pending, 0
		s.granted += grant
	}
	s.mu.Unlock()
	if grant > 0 {
		// When the pipe is broken the next Read tells.
		_ = s.mux.send(frameCredit, s.id, binary.BigEndian.AppendUint32(nil, uint32(grant)))
	}
	return n, nil
}

// Write sends p as far as the other side has room for it, and returns when all
// is sent.
func (s *Stream) Write(p []byte) (int, error) {
	sent := 0
	for len(p) > 0 {
		n, err := s.take(len(p))
		if err != nil {
			return sent, err
		}
		if err := s.mux.send(frameData, s.id, p[:n]); err != nil {
			return sent, err
		}
		sent += n
		p = p[n:]
	}
	return sent, nil
}

// take waits for credit and takes up to want bytes of it.
func (s *Stream) take(want int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.credit == 0 && s.err == nil && !s.outEnd {
		s.change.Wait()
	}
	switch {
	case s.err != nil:
		return 0, s.err
	case s.outEnd:
		return 0, ErrClosed
	}
	n := min(want, s.credit, maxData)
	s.credit -= n
	return n, nil
}

// CloseWrite tells the other side that no more data will come.
func (s *Stream) CloseWrite() error {
	s.mu.Lock()
	if s.err != nil || s.outEnd {
		s.mu.Unlock()
		return nil
	}
	s.outEnd = true
	over := s.inEnd
	s.change.Broadcast()
	s.mu.Unlock()
	if over { // before the other side knows and opens another stream
		s.mux.release(s)
	}
	return s.mux.send(frameEnd, s.id, nil)
}

// Close ends the stream. What the other side has not read yet may be lost,
// unless both sides have ended their directions before.
func (s *Stream) Close() error {
	if !s.fail(ErrClosed) {
		return nil
	}
	s.mux.release(s)
	return s.mux.send(frameReset, s.id, nil)
}

// fail ends both directions; it reports whether the other side has to be told.
func (s *Stream) fail(err error) bool {
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return false
	}
	over := s.inEnd && s.outEnd
	s.err, s.in, s.base = err, nil, nil
	s.change.Broadcast()
	return !over
}

// push takes data in. More than was granted is a breach.
func (s *Stream) push(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inEnd || len(p) > s.granted {
		return fmt.Errorf("%w: stream %d: %d bytes after the end, or more than the %d granted", errProtocol, s.id, len(p), s.granted)
	}
	s.granted -= len(p)
	if s.err == nil {
		s.store(p)
		s.change.Broadcast()
	}
	return nil
}

// store appends p to what is not read yet, which never is more than Window.
func (s *Stream) store(p []byte) {
	if need := len(s.in) + len(p); cap(s.in) < need {
		to := s.base
		if cap(to) < need {
			to = make([]byte, 0, max(need, 2*cap(to)))
			s.base = to
		}
		s.in = append(to[:0], s.in...)
	}
	s.in = append(s.in, p...)
}

// end notes that the other side sends no more.
func (s *Stream) end() (over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inEnd = true
	s.change.Broadcast()
	return s.outEnd
}

// grant books credit. More than was ever taken is a breach.
func (s *Stream) grant(n uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if uint64(n) > uint64(Window-s.credit) {
		return fmt.Errorf("%w: stream %d: credit of %d bytes, %d are under way", errProtocol, s.id, n, Window-s.credit)
	}
	s.credit += int(n)
	s.change.Broadcast()
	return nil
}
