package egress

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

// Line is what the log says of one request, as one JSON object per line.
type Line struct {
	Time    time.Time `json:"time"` // of the request, UTC
	Host    string    `json:"host"`
	Port    uint16    `json:"port"`
	Allowed bool      `json:"allowed"`
	// Reason says what decided, or what went wrong.
	Reason string `json:"reason"`
	// BytesUp were sent to the host, BytesDown came from it.
	BytesUp   int64 `json:"bytes_up"`
	BytesDown int64 `json:"bytes_down"`
}

// recorder writes lines, one at a time. The first error of its writer ends it:
// a log that is full or gone must not stop the traffic.
type recorder struct {
	mu sync.Mutex
	w  io.Writer
}

func (r *recorder) record(l Line) {
	l.Time = l.Time.UTC()
	text, err := json.Marshal(l)
	if err != nil {
		return // no field of a Line can fail
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.w == nil {
		return
	}
	if _, err := r.w.Write(append(text, '\n')); err != nil {
		r.w = nil
	}
}
