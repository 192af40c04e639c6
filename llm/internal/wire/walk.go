package wire

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// walk goes through the members of an object or the elements of a list, without decoding
// or copying what is in them. On text that is not JSON it ends early or gives values that
// are not JSON either; it never goes beyond the text.
type walk struct {
	text []byte
	at   int
	last byte // what closes it
	// whole says that it came to its closing bracket.
	whole bool
	// key is that of a member, as it means; value is JSON, without spaces around it.
	key, value []byte
	// start and end are where the value is in the text.
	start, end int
}

// walkObject goes through an object; through nothing where the text is none.
func walkObject(text []byte) walk { return newWalk(text, '{', '}') }

// walkList goes through a list; through nothing where the text is none.
func walkList(text []byte) walk { return newWalk(text, '[', ']') }

func newWalk(text []byte, first, last byte) walk {
	w := walk{text: text, last: last}
	w.at = skipSpace(text, 0)
	if w.at < len(text) && text[w.at] == first {
		w.at++
		return w
	}
	w.at = len(text)
	return w
}

// next goes to the next member or element, and tells whether there is one.
func (w *walk) next() bool {
	i := skipSpace(w.text, w.at)
	if w.value != nil && i < len(w.text) && w.text[i] == ',' {
		i = skipSpace(w.text, i+1)
	}
	w.at = len(w.text)
	if i >= len(w.text) || w.text[i] == w.last {
		w.whole = w.whole || i < len(w.text)
		return false
	}
	if w.last == '}' {
		end := skipString(w.text, i)
		if end < 0 {
			return false
		}
		w.key = unescaped(w.text[i+1 : end-1])
		i = skipSpace(w.text, end)
		if i >= len(w.text) || w.text[i] != ':' {
			return false
		}
		i = skipSpace(w.text, i+1)
	}
	end := skipValue(w.text, i)
	if end < 0 {
		return false
	}
	w.start, w.end, w.value, w.at = i, end, w.text[i:end], end
	return true
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString returns where the string that starts at i ends; -1 where there is none.
func skipString(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	for i++; i < len(b); {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		i += n + 1
		// An even number of backslashes before the quote are each other's.
		slashes := 0
		for k := i - 2; b[k] == '\\'; k-- {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
	return -1
}

// skipValue returns where the value that starts at i ends; -1 where there is none.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	}
	start := i
	for i < len(b) {
		switch b[i] {
		case ',', ']', '}', ':', '"', '{', '[', ' ', '\n', '\r', '\t':
			if i == start {
				return -1
			}
			return i
		}
		i++
	}
	return i
}

func skipNested(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = skipString(b, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

// unescaped is the inside of a string as it means.
func unescaped(inside []byte) []byte {
	if bytes.IndexByte(inside, '\\') < 0 {
		return inside
	}
	var s string
	if json.Unmarshal(append(append([]byte{'"'}, inside...), '"'), &s) != nil {
		return inside
	}
	return []byte(s)
}

// inside is a string in JSON as it means; empty for what is none.
func inside(value []byte) []byte {
	if len(value) < 2 || value[0] != '"' {
		return nil
	}
	return unescaped(value[1 : len(value)-1])
}

// textLen is how many bytes of UTF-8 a string in JSON means, about; 0 for what is none.
func textLen(value []byte) int64 {
	if len(value) < 2 || value[0] != '"' {
		return 0
	}
	inside := value[1 : len(value)-1]
	n := int64(len(inside))
	for {
		i := bytes.IndexByte(inside, '\\')
		if i < 0 || i+1 >= len(inside) {
			return n
		}
		skip := 2
		n--
		if inside[i+1] == 'u' && i+6 <= len(inside) {
			skip = 6
			n -= 5 - escapedLen(inside[i+2:i+6])
		}
		inside = inside[i+skip:]
	}
}

// escapedLen is how many bytes of UTF-8 the character of four hex digits has. Each half of
// a pair of surrogates counts for two.
func escapedLen(digits []byte) int64 {
	var r rune
	for _, c := range digits {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		}
		r = r<<4 | rune(c&0xf)
	}
	if r >= 0xd800 && r < 0xe000 {
		return 2
	}
	return int64(utf8.RuneLen(r))
}

// isNull tells of a member that is absent or null.
func isNull(value []byte) bool { return len(value) == 0 || string(value) == "null" }

// isObject tells of a member that is an object.
func isObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }
