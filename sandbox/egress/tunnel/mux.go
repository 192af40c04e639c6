package tunnel

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
)

// Mux is one end of a pair of pipes that carries streams.
type Mux struct {
	r      io.Reader
	w      frameWriter
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
		r: r, w: frameWriter{w: w}, opener: opener,
		queue: make(chan *Stream, MaxStreams), over: make(chan struct{}), streams: map[uint32]*Stream{},
	}
}

// Run reads until r ends or the other side breaches the protocol, and returns
// why: io.EOF at an orderly end. All streams are over then. It never waits for
// whoever uses the streams, and never writes.
func (m *Mux) Run() error {
	in := frameReader{r: bufio.NewReaderSize(m.r, 2*maxData)}
	var err error
	for err == nil {
		var f frame
		if f, err = in.next(); err == nil {
			err = m.dispatch(f)
		}
	}
	m.mu.Lock()
	m.err = err
	all := m.streams
	m.streams = map[uint32]*Stream{}
	m.mu.Unlock()
	close(m.over)
	for _, s := range all {
		s.fail(ErrReset)
	}
	return err
}

func (m *Mux) dispatch(f frame) error {
	m.mu.Lock()
	s := m.streams[f.id]
	m.mu.Unlock()
	if f.typ == frameOpen {
		return m.opened(s, f.id)
	}
	if s == nil {
		return nil // of a stream that was given up here
	}
	switch f.typ {
	case frameData:
		return s.push(f.payload)
	case frameEnd:
		if s.end() {
			m.release(s)
		}
	case frameReset:
		s.fail(ErrReset)
		m.release(s)
	case frameCredit:
		return s.grant(binary.BigEndian.Uint32(f.payload))
	}
	return nil
}

// opened takes a stream of the other side in. Beyond the queue's length nobody
// opens streams that keeps to MaxStreams.
func (m *Mux) opened(old *Stream, id uint32) error {
	if m.opener || old != nil {
		return fmt.Errorf("%w: stream %d cannot be opened", errProtocol, id)
	}
	s := newStream(m, id)
	m.mu.Lock()
	m.streams[id] = s
	n := len(m.streams)
	m.mu.Unlock()
	if n > MaxStreams {
		return fmt.Errorf("%w: more than %d streams", errProtocol, MaxStreams)
	}
	select {
	case m.queue <- s:
		return nil
	default:
		return fmt.Errorf("%w: %d streams are waiting", errProtocol, MaxStreams)
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
	return s, m.send(frameOpen, s.id, nil)
}

func (m *Mux) send(typ frameType, id uint32, payload []byte) error { return m.w.send(typ, id, payload) }

func (m *Mux) release(s *Stream) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.streams[s.id] == s {
		delete(m.streams, s.id)
	}
}
