package blob

import (
	"io"
	"sync"
)

// The read-ahead of an unpacking layer: what is read and inflated while files
// are made of what came before.
const (
	aheadSize    = 256 << 10
	aheadBuffers = 4
)

var aheadPool = sync.Pool{New: func() any { return new([aheadSize]byte) }}

// aheadPart is a piece of a stream; err comes with the last one.
type aheadPart struct {
	buf *[aheadSize]byte
	n   int
	err error
}

// ahead is the reader of ReadAhead.
type ahead struct {
	parts chan aheadPart
	stop  chan struct{}
	now   aheadPart
	at    int
	once  sync.Once
}

// ReadAhead reads from r in a goroutine of its own, a few buffers ahead. Close ends
// that and waits for it; before that nothing else may read from r. It may be called
// again.
func ReadAhead(r io.Reader) io.ReadCloser {
	a := &ahead{parts: make(chan aheadPart, aheadBuffers), stop: make(chan struct{})}
	go a.run(r)
	return a
}

func (a *ahead) run(r io.Reader) {
	defer close(a.parts)
	for {
		part := aheadPart{buf: aheadPool.Get().(*[aheadSize]byte)}
		for part.err == nil && part.n < aheadSize {
			var n int
			n, part.err = r.Read(part.buf[part.n:])
			part.n += n
		}
		select {
		case a.parts <- part:
		case <-a.stop:
			return
		}
		if part.err != nil {
			return
		}
	}
}

func (a *ahead) Read(p []byte) (int, error) {
	for a.at == a.now.n {
		if a.now.err != nil {
			return 0, a.now.err
		}
		a.release()
		part, ok := <-a.parts
		if !ok {
			return 0, io.ErrClosedPipe
		}
		a.now, a.at = part, 0
	}
	n := copy(p, a.now.buf[a.at:a.now.n])
	a.at += n
	return n, nil
}

func (a *ahead) release() {
	if a.now.buf != nil {
		aheadPool.Put(a.now.buf)
		a.now.buf = nil
	}
}

func (a *ahead) Close() error {
	a.once.Do(func() {
		close(a.stop)
		for part := range a.parts {
			aheadPool.Put(part.buf)
		}
		a.release()
		a.now = aheadPart{err: io.ErrClosedPipe}
		a.at = 0
	})
	return nil
}
