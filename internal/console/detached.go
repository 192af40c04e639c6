package console

import (
	"io"
	"sync"
	"time"
)

// detachedQueue is how many writes may wait for a reader.
const detachedQueue = 4096

// Detached writes to a stream that nobody may be reading, such as a full pipe: a write
// takes no time, and is lost where too many wait. What was written stays in order.
type Detached struct {
	mu     sync.Mutex // guards closed, and queue against being closed under a write
	closed bool
	queue  chan []byte
	done   chan struct{}
}

// Detach returns a writer to w, which must be closed.
func Detach(w io.Writer) *Detached {
	d := &Detached{queue: make(chan []byte, detachedQueue), done: make(chan struct{})}
	go func() {
		defer close(d.done)
		for p := range d.queue {
			_, _ = w.Write(p) // there is nobody to tell
		}
	}()
	return d
}

// Write never fails.
func (d *Detached) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		select {
		case d.queue <- append([]byte(nil), p...):
		default:
		}
	}
	return len(p), nil
}

// Close waits until everything is written, but no longer than limit. What is written
// later is lost.
func (d *Detached) Close(limit time.Duration) {
	d.mu.Lock()
	if !d.closed {
		d.closed = true
		close(d.queue)
	}
	d.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-d.done:
	case <-timer.C:
	}
}
