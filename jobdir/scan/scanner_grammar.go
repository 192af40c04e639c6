package scan

import "bytes"

// space skips white space between tokens.
func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\n', '\t', '\r':
			s.pos++
		default:
			return
		}
	}
}

// peek returns the first byte of the next token, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.failed || s.pos >= len(s.data) {
		return 0
	}
	return s.data[s.pos]
}

// next consumes one byte that must come.
func (s *scanner) next(want byte) {
	if s.peek() != want {
		s.fail()
		return
	}
	s.pos++
}

// null consumes null if it comes next.
func (s *scanner) null() bool {
	if s.peek() != 'n' {
		return false
	}
	s.word("null")
	return !s.failed
}

func (s *scanner) word(w string) {
	if !bytes.HasPrefix(s.data[s.pos:], []byte(w)) {
		s.fail()
		return
	}
	s.pos += len(w)
}

// object calls member for each member, standing before its value, which
// member must consume. The key is valid until member returns.
func (s *scanner) object(member func(key []byte)) {
	s.container('{', '}', func() {
		key := s.string()
		s.next(':')
		if !s.failed {
			member(key)
		}
	})
}

func (s *scanner) array(item func()) { s.container('[', ']', item) }

func (s *scanner) container(open, end byte, item func()) {
	s.next(open)
	if s.depth++; s.depth > maxScanDepth {
		s.fail()
	}
	if s.peek() == end {
		s.pos++
		s.depth--
		return
	}
	for !s.failed {
		item()
		if s.peek() == ',' {
			s.pos++
			continue
		}
		s.next(end)
		break
	}
	s.depth--
}

// skip consumes one value of any kind.
func (s *scanner) skip() {
	switch c := s.peek(); c {
	case '{':
		s.object(func([]byte) { s.skip() })
	case '[':
		s.array(s.skip)
	case '"':
		s.skipString()
	case 't':
		s.word("true")
	case 'f':
		s.word("false")
	case 'n':
		s.word("null")
	default:
		s.numberToken()
	}
}

// string consumes a string and returns what is between its quotes. Strings
// with escapes are decoded by nobody here: they fail.
func (s *scanner) string() []byte {
	s.next('"')
	if s.failed {
		return nil
	}
	rest := s.data[s.pos:]
	n := bytes.IndexByte(rest, '"')
	if n < 0 || hasEscape(rest[:n]) {
		s.fail()
		return nil
	}
	s.pos += n + 1
	return rest[:n]
}

func hasEscape(b []byte) bool {
	for _, c := range b {
		if c < 0x20 || c == '\\' {
			return true
		}
	}
	return false
}

// skipString consumes a string, escapes included.
func (s *scanner) skipString() {
	s.next('"')
	for i := s.pos; i < len(s.data) && !s.failed; i++ {
		switch c := s.data[i]; {
		case c == '"':
			s.pos = i + 1
			return
		case c < 0x20:
			s.fail()
		case c == '\\':
			i = s.escape(i + 1)
		}
	}
	s.fail()
}

// escape checks the escape sequence whose letter is at i, and returns the
// position of its last byte.
func (s *scanner) escape(i int) int {
	if i >= len(s.data) {
		s.fail()
		return i
	}
	switch s.data[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i
	case 'u':
		for end := i + 4; i < end; {
			i++
			if i >= len(s.data) || !isHex(s.data[i]) {
				s.fail()
				return i
			}
		}
		return i
	}
	s.fail()
	return i
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// numberToken consumes a number and tells whether it is an int. The words for
// numbers that are not finite fail.
func (s *scanner) numberToken() (token []byte, integral bool) {
	if s.peek() == 0 {
		s.fail()
		return nil, false
	}
	start := s.pos
	if s.data[s.pos] == '-' {
		s.pos++
	}
	switch {
	case s.pos < len(s.data) && s.data[s.pos] == '0':
		s.pos++
	default:
		s.digits()
	}
	integral = true
	if s.pos < len(s.data) && s.data[s.pos] == '.' {
		integral = false
		s.pos++
		s.digits()
	}
	if s.pos < len(s.data) && (s.data[s.pos] == 'e' || s.data[s.pos] == 'E') {
		integral = false
		s.pos++
		if s.pos < len(s.data) && (s.data[s.pos] == '+' || s.data[s.pos] == '-') {
			s.pos++
		}
		s.digits()
	}
	if s.pos-start > maxScanDigits {
		s.fail()
	}
	return s.data[start:s.pos], integral
}

// digits consumes at least one digit.
func (s *scanner) digits() {
	start := s.pos
	for s.pos < len(s.data) && s.data[s.pos] >= '0' && s.data[s.pos] <= '9' {
		s.pos++
	}
	if s.pos == start {
		s.fail()
	}
}
