package gateway

import (
	"bytes"
	"io"
)

// minSecret is how long a key is at least that is taken for one. Servers of one's own are
// given words in its place, which may well be in an answer.
const minSecret = 16

func secret(key string) bool { return len(key) >= minSecret }

// masked reads what a provider answers, with stars in the place of its key. What may be the
// beginning of the key is held back until more has come.
type masked struct {
	src  io.Reader
	key  []byte
	held []byte
	end  error
}

// Read reads into p, which must be longer than two keys.
func (m *masked) Read(p []byte) (int, error) {
	if len(p) < 2*len(m.key) {
		return 0, io.ErrShortBuffer
	}
	for m.end == nil {
		n := copy(p, m.held)
		more, err := m.src.Read(p[n:])
		n, m.end = n+more, err
		m.mask(p[:n])
		rest := m.begun(p[:n])
		if m.end != nil {
			rest = 0
		}
		m.held = append(m.held[:0], p[n-rest:n]...)
		if n > rest {
			return n - rest, nil
		}
	}
	return 0, m.end
}

func (m *masked) mask(text []byte) {
	for {
		i := bytes.Index(text, m.key)
		if i < 0 {
			return
		}
		for k := range m.key {
			text[i+k] = '*'
		}
		text = text[i+len(m.key):]
	}
}

// begun is how long the beginning of the key is that a text ends with.
func (m *masked) begun(text []byte) int {
	for n := min(len(m.key)-1, len(text)); n > 0; n-- {
		if bytes.HasSuffix(text, m.key[:n]) {
			return n
		}
	}
	return 0
}
