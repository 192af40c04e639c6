package engine

import (
	"strings"
	"time"
)

// Reporter passes on progress, a few times at most per second.
type Reporter struct {
	to   func(string)
	now  func() time.Time
	last time.Time
	text string
}

// NewReporter reports to a function, which may be nil.
func NewReporter(to func(string), now func() time.Time) *Reporter {
	return &Reporter{to: to, now: now}
}

// Say reports a text that is not the last one.
func (r *Reporter) Say(text string) {
	if r.to == nil || text == r.text {
		return
	}
	r.last, r.text = r.now(), text
	r.to(text)
}

// Sometimes reports a text unless another one was reported just before.
func (r *Reporter) Sometimes(text string) {
	const every = 500 * time.Millisecond
	if r.now().Sub(r.last) >= every {
		r.Say(text)
	}
}

// Tail keeps the end of what is written to it.
type Tail struct {
	limit int
	buf   []byte
	cut   bool
}

// NewTail keeps so many bytes.
func NewTail(limit int) *Tail { return &Tail{limit: limit} }

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - t.limit; over > 0 {
		t.buf, t.cut = append(t.buf[:0], t.buf[over:]...), true
	}
	return len(p), nil
}

// String is the end of the text, from the begin of a line.
func (t *Tail) String() string {
	text := strings.ToValidUTF8(string(t.buf), "\uFFFD")
	if !t.cut {
		return text
	}
	if _, rest, found := strings.Cut(text, "\n"); found {
		text = rest
	}
	return "[…]\n" + text
}
