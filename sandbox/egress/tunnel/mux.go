package tunnel

import (
	"fmt"
	"io"
	"sync"

	"github.com/proctor-run/proctor/sandbox/internal/frames"
)

// Mux is one end of a pair of pipes that carries streams.
type Mux struct {
	r      io.Reader
	w      *frames.Writer
	pool   frames.Pool
	opener bool
	queue  chan *Stream  // opened by the other side, not accepted yet
	over   chan struct{} // closed when Run has ended

	mu      sync.Mutex
	streams map[uint32]*Stream
	lastID  uint32
	err     error // why Run has ended
}

// NewMux is the outer end: the relay behind r and w opens streams.
func NewMux(r io.Reader, w io.Writer) *Mux { return newMux(r, w, false) }

func newMux(r io.Reader, w io.Writer, opener bool) *Mux {
	return &Mux{
		r: r, w: frames.NewWriter(w), opener: opener,
		queue: make(chan *Stream, maxStreams), over: make(chan struct{}), streams: map[uint32]*Stream{},
	}
}

// Run reads until r ends or the other side breaches the protocol, and returns
// why: io.EOF at an orderly end. All streams are over then. It never waits for
// whoever uses the streams, and never writes.
func (m *Mux) Run() error {
	err := frames.Serve(m.r, &m.pool, limit, m.dispatch)
	m.mu.Lock()
	m.err = err
	all := m.streams
	m.streams = map[uint32]*Stream{}
	m.mu.Unlock()
	close(m.over)
	for _, s := range all {
		s.fail(errReset)
	}
	return err
}

func (m *Mux) dispatch(f frames.Frame) error {
	m.mu.Lock()
	s := m.streams[f.ID]
	m.mu.Unlock()
	switch f.Type {
	case frameOpen:
		return m.opened(s, f.ID)
	case frameData, frameEnd, frameReset, frameCredit:
	case frameFinish:
		if !m.opener {
			return fmt.Errorf("%w: stream %d is finished from inside", frames.ErrProtocol, f.ID)
		}
	default:
		return fmt.Errorf("%w: unknown frame of type %d", frames.ErrProtocol, f.Type)
	}
	if s == nil {
		m.pool.Put(f.Payload)
		return nil // of a stream that was given up here
	}
	switch f.Type {
	case frameData:
		return s.in.Push(f)
	case frameEnd:
		if s.end(f) {
			m.release(s)
		}
	case frameFinish:
		if s.finished() {
			m.release(s)
		}
	case frameReset:
		s.fail(errReset)
		m.release(s)
	case frameCredit:
		n, err := frames.CreditOf(f.Payload)
		if err != nil {
			return err
		}
		return s.credit.Add(n)
	}
	return nil
}

// opened takes a stream of the other side in. One that keeps to MaxStreams
// never has more waiting than the queue is long.
func (m *Mux) opened(old *Stream, id uint32) error {
	if m.opener || old != nil {
		return fmt.Errorf("%w: stream %d cannot be opened", frames.ErrProtocol, id)
	}
	s := newStream(m, id)
	m.mu.Lock()
	m.streams[id] = s
	n := len(m.streams)
	m.mu.Unlock()
	if n > maxStreams {
		return fmt.Errorf("%w: more than %d streams", frames.ErrProtocol, maxStreams)
	}
	select {
	case m.queue <- s:
		return nil
	default:
		return fmt.Errorf("%w: %d streams are waiting", frames.ErrProtocol, maxStreams)
	}
}

// Accept waits for a stream of the other side, and returns why Run has ended
// when it has.
func (m *Mux) Accept() (*Stream, error) {
	select {
	case s := <-m.queue:
		return s, nil
	case <-m.over:
		m.mu.Lock()
		defer m.mu.Unlock()
		return nil, m.err
	}
}

// open begins a stream.
func (m *Mux) open() (*Stream, error) {
	m.mu.Lock()
	if m.err != nil {
		defer m.mu.Unlock()
		return nil, m.err
	}
	for {
		m.lastID++
		if m.streams[m.lastID] == nil {
			break
		}
	}
	s := newStream(m, m.lastID)
	m.streams[s.id] = s
	m.mu.Unlock()
	return s, m.w.Send(frameOpen, s.id, nil)
}

func (m *Mux) release(s *Stream) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.streams[s.id] == s {
		delete(m.streams, s.id)
	}
}
