package tunnel

import (
	"sync"
	"time"
)

// deadline is the end of one direction's waiting, as net.Conn has it.
type deadline struct {
	mu     sync.Mutex
	timer  *time.Timer
	passed chan struct{} // closed when it has passed, and replaced when it is set again
}

func newDeadline() deadline { return deadline{passed: make(chan struct{})} }

// set lets the deadline pass at t, at once when t has passed already, and never
// when t is zero.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.passed // its function has begun
	}
	d.timer = nil
	over := isClosed(d.passed)
	left := time.Until(t)
	if !t.IsZero() && left <= 0 {
		if !over {
			close(d.passed)
		}
		return
	}
	if over {
		d.passed = make(chan struct{})
	}
	if !t.IsZero() {
		passed := d.passed
		d.timer = time.AfterFunc(left, func() { close(passed) })
	}
}

// wait is closed when the deadline that is set now has passed.
func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.passed
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
