package redact

import (
	"bytes"
	"io"
	"sync"
)

// Writer redacts what is written to it before it goes on. It keeps back only what
// may be the beginning of a secret, which is less than the longest form of one has;
// Flush and Close write that. It may be used by several goroutines.
type Writer struct {
	set *Set
	to  io.Writer

	mu    sync.Mutex // guards what follows
	held  []byte
	out   []byte
	cover cover // of held
}

// Writer returns a writer to w; without secrets it writes through. Closing it does not
// close w.
func (s *Set) Writer(w io.Writer) *Writer { return &Writer{set: s, to: w} }

// Write takes all of p. An error is that of the writer behind it.
func (w *Writer) Write(p []byte) (int, error) {
	if w.set == nil {
		return w.to.Write(p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = append(w.held, p...)
	if err := w.pass(w.set.undecided(w.held)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes what was kept back.
func (w *Writer) Flush() error {
	if w.set == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pass(len(w.held))
}

// Close is [Writer.Flush].
func (w *Writer) Close() error { return w.Flush() }

// pass writes what is held up to a limit.
func (w *Writer) pass(limit int) error {
	w.out = w.cover.append(w.out[:0], w.set, w.held, limit)
	w.cover.end = max(0, w.cover.end-limit)
	w.held = w.held[:copy(w.held, w.held[limit:])]
	if len(w.out) == 0 {
		return nil
	}
	_, err := w.to.Write(w.out)
	return err
}

// undecided is the first place where a pattern may begin that goes on behind the text.
func (s *Set) undecided(text []byte) int {
	for i := max(0, len(text)-s.longest+1); i < len(text); i++ {
		if s.begins(text[i:]) {
			return i
		}
	}
	return len(text)
}

// begins reports whether a text is the beginning of a longer pattern.
func (s *Set) begins(text []byte) bool {
	if len(text) == 1 {
		for i := range s.patterns {
			if s.patterns[i].text[0] == text[0] {
				return true
			}
		}
		return false
	}
	for _, i := range s.starts[pair(text, 1)] {
		if p := s.patterns[i].text; len(p) > len(text) && bytes.HasPrefix(p, text) {
			return true
		}
	}
	return false
}
