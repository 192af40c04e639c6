// Package redact replaces the values of secrets in text: as they are, and in the
// encodings in which programs write them down.
//
// What is found is replaced by a mark such as [REDACTED:API_KEY], which is legal
// within a JSON string. Occurrences that overlap are replaced by one mark, so that
// no part of either is left; nothing is replaced within a mark.
package redact

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
)

// MinLength is the length of the shortest value that is replaced, in bytes. A
// shorter one would blank ordinary text.
const MinLength = 8

// Secret is a value that is to be found nowhere, and the name that stands in its
// place.
type Secret struct{ Name, Value string }

// Set finds the values of secrets. It does not change and may be used by several
// goroutines. A nil Set has no secrets and costs nothing.
//
// The search is that of Wu and Manber: a window as long as the shortest pattern is
// moved by what its last two bytes allow, and patterns are compared only where the
// window ends as they do.
type Set struct {
	patterns []pattern
	window   int
	longest  int
	// shift says by two bytes how far a window that ends with them can be moved; at
	// 0, ends has the patterns whose window ends so.
	shift [1 << 16]uint8
	ends  map[uint16][]candidate
	// starts has the patterns by their first two bytes.
	starts map[uint16][]int32
}

type pattern struct {
	text []byte
	mark []byte
}

// candidate is a pattern to be compared, with its first bytes.
type candidate struct {
	first uint64
	index int32
}

// maxShift bounds a window, so that shifts fit into a byte.
const maxShift = 255

// New returns a set of secrets, nil when there are none. Values of less than
// [MinLength] bytes are ignored; of several names for one value the first counts.
func New(secrets []Secret) *Set {
	found := map[string]string{} // marks by pattern
	for _, s := range secrets {
		if len(s.Value) < MinLength {
			continue
		}
		mark := Mark(s.Name)
		for _, form := range forms(s.Value) {
			if _, known := found[form]; !known {
				found[form] = mark
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	s := &Set{ends: map[uint16][]candidate{}, starts: map[uint16][]int32{}, window: maxShift}
	for text, mark := range found {
		s.patterns = append(s.patterns, pattern{[]byte(text), []byte(mark)})
		s.window, s.longest = min(s.window, len(text)), max(s.longest, len(text))
	}
	// The longest first, so that the first that fits is it.
	slices.SortFunc(s.patterns, func(a, b pattern) int {
		if d := len(b.text) - len(a.text); d != 0 {
			return d
		}
		return bytes.Compare(a.text, b.text)
	})
	s.index()
	return s
}

func (s *Set) index() {
	for i := range s.shift {
		s.shift[i] = uint8(s.window - 1)
	}
	for i, p := range s.patterns {
		for at := 1; at < s.window; at++ {
			block := pair(p.text, at)
			s.shift[block] = min(s.shift[block], uint8(s.window-1-at))
		}
		end, start := pair(p.text, s.window-1), pair(p.text, 1)
		s.ends[end] = append(s.ends[end], candidate{binary.LittleEndian.Uint64(p.text), int32(i)})
		s.starts[start] = append(s.starts[start], int32(i))
	}
}

// pair is the two bytes of text that end at an index.
func pair(text []byte, at int) uint16 { return uint16(text[at-1])<<8 | uint16(text[at]) }

// next finds the first place at or after from where a pattern begins, and the longest
// pattern there; ok is false for none.
func (s *Set) next(text []byte, from int) (at int, p *pattern, ok bool) {
	for i := from + s.window - 1; i < len(text); {
		move := s.shift[uint16(text[i-1])<<8|uint16(text[i])]
		if move > 0 {
			i += int(move)
			continue
		}
		at := i - s.window + 1
		if p := s.match(text, at, pair(text, i)); p != nil {
			return at, p, true
		}
		i++
	}
	return 0, nil, false
}

// match returns the longest pattern at a place whose window ends with two bytes.
func (s *Set) match(text []byte, at int, end uint16) *pattern {
	rest := text[at:]
	first := binary.LittleEndian.Uint64(rest)
	for _, c := range s.ends[end] {
		if c.first == first && bytes.HasPrefix(rest, s.patterns[c.index].text) {
			return &s.patterns[c.index]
		}
	}
	return nil
}

// Bytes returns text without secrets: text itself when there are none in it.
func (s *Set) Bytes(text []byte) []byte {
	if s == nil {
		return text
	}
	if _, _, found := s.next(text, 0); !found {
		return text
	}
	c := cover{}
	return c.append(nil, s, text, len(text))
}

// String is [Set.Bytes] for a string.
func (s *Set) String(text string) string {
	if s == nil {
		return text
	}
	data := []byte(text)
	if out := s.Bytes(data); len(out) != len(data) || !bytes.Equal(out, data) {
		return string(out)
	}
	return text
}

// Has reports whether a secret is in a text.
func (s *Set) Has(text string) bool {
	if s == nil {
		return false
	}
	_, _, found := s.next([]byte(text), 0)
	return found
}

// Error returns err with a text without secrets. What it wraps is still found; an
// error without secrets is returned as it is.
func (s *Set) Error(err error) error {
	if s == nil || err == nil {
		return err
	}
	text := err.Error()
	clean := s.String(text)
	if clean == text {
		return err
	}
	return &cleaned{clean, err}
}

type cleaned struct {
	text string
	err  error
}

func (e *cleaned) Error() string { return e.text }
func (e *cleaned) Unwrap() error { return e.err }

// cover is what has been replaced: bytes before end are under a mark, or, with fill,
// under so many asterisks.
type cover struct {
	end  int
	fill bool
}

// append appends text to dst up to a limit before which it is known whether patterns
// begin, without the secrets.
func (c *cover) append(dst []byte, s *Set, text []byte, limit int) []byte {
	done := 0
	for from := 0; ; {
		at, p, ok := s.next(text, from)
		if !ok || at >= limit {
			break
		}
		if at >= c.end {
			dst = append(dst, text[max(done, c.end):at]...)
			if !c.fill {
				dst = append(dst, p.mark...)
			}
		}
		end := max(c.end, at+len(p.text))
		if c.fill {
			dst = append(dst, bytes.Repeat([]byte{'*'}, end-max(c.end, at))...)
		}
		c.end = end
		done, from = c.end, at+1
	}
	if start := max(done, c.end); start < limit {
		dst = append(dst, text[start:limit]...)
	}
	return dst
}

// The parts of a mark.
const (
	markStart = "[REDACTED:"
	markEnd   = "]"
	maxName   = 64
)

// Mark is what stands in the place of a secret of a name.
func Mark(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	return markStart + clean[:min(len(clean), maxName)] + markEnd
}

// Marked lists the names of the marks in a text, in order.
func Marked(text string) []string {
	var names []string
	for {
		_, rest, found := strings.Cut(text, markStart)
		if !found {
			return names
		}
		name, after, found := strings.Cut(rest, markEnd)
		if !found {
			return names
		}
		if Mark(name) == markStart+name+markEnd {
			names = append(names, name)
		}
		text = after
	}
}
