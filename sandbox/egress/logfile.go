package egress

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// BoundedLog is a log of whole lines with an end: see [sandbox.Network]. Its
// methods may be called concurrently.
type BoundedLog struct {
	mu      sync.Mutex
	w       io.WriteCloser
	left    int
	dropped int
}

// NewBoundedLog keeps up to limit bytes of lines in w.
func NewBoundedLog(w io.WriteCloser, limit int) *BoundedLog {
	return &BoundedLog{w: w, left: limit}
}

// Write takes one line. From the first one on that does not fit, lines are
// counted and dropped, which is no error.
func (l *BoundedLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dropped > 0 || len(line) > l.left {
		l.dropped++
		return len(line), nil
	}
	l.left -= len(line)
	n, err := l.w.Write(line)
	if err != nil {
		return n, fmt.Errorf("writing the log of the egress proxy: %w", err)
	}
	return n, nil
}

// Close writes how many lines are missing, as a last [Line], and closes what
// the log is written to.
func (l *BoundedLog) Close(now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	if l.dropped > 0 {
		var last []byte
		last, err = json.Marshal(Line{Time: now.UTC(), Reason: fmt.Sprintf("%d more lines were dropped: the log is full", l.dropped)})
		if err == nil {
			_, err = l.w.Write(append(last, '\n'))
		}
	}
	if err = errors.Join(err, l.w.Close()); err != nil {
		return fmt.Errorf("closing the log of the egress proxy: %w", err)
	}
	return nil
}
