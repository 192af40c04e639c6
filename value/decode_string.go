package value

import (
	"strings"
	"unicode/utf8"
)

// plain marks the bytes that stand for themselves inside a JSON string.
var plain = func() (table [256]bool) {
	for c := 0x20; c < 256; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()

// name reads a string that names a member.
func (d *decoder) name() (string, error) {
	start := d.pos + 1
	end := skipPlain(d.text, start)
	if end == len(d.text) || d.text[end] != '"' {
		return d.str()
	}
	d.pos = end + 1
	raw := d.text[start:end]
	if raw == "" {
		return "", nil
	}
	slot := &d.known[(len(raw)*7+int(raw[0])*31+int(raw[len(raw)-1]))%len(d.known)]
	if *slot != raw {
		*slot = strings.Clone(raw)
	}
	return *slot, nil
}

func skipPlain(s string, i int) int {
	for i < len(s) && plain[s[i]] {
		i++
	}
	return i
}

// str reads the string that begins with the quote at the position.
func (d *decoder) str() (string, error) {
	quote := d.pos
	start := quote + 1
	end := skipPlain(d.text, start)
	if end < len(d.text) && d.text[end] == '"' {
		d.pos = end + 1
		return strings.Clone(d.text[start:end]), nil
	}
	d.buf = d.buf[:0]
	for {
		d.buf = append(d.buf, d.text[start:end]...)
		switch {
		case end == len(d.text):
			return "", d.fail("Unterminated string starting at", quote)
		case d.text[end] == '"':
			d.pos = end + 1
			return string(d.buf), nil
		case d.text[end] != '\\':
			return "", d.fail("Invalid control character at", end)
		case end+1 == len(d.text):
			return "", d.fail("Unterminated string starting at", quote)
		}
		var err error
		if start, err = d.escape(end); err != nil {
			return "", err
		}
		end = skipPlain(d.text, start)
	}
}

// escape reads the escape whose backslash is at the given place and returns
// where the text goes on.
func (d *decoder) escape(at int) (int, error) {
	c := d.text[at+1]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return d.unicodeEscape(at)
	default:
		return 0, d.fail("Invalid \\escape", at)
	}
	d.buf = append(d.buf, c)
	return at + 2, nil
}

func (d *decoder) unicodeEscape(at int) (int, error) {
	r, ok := hex4(d.text, at+2)
	if !ok || at+6 == len(d.text) {
		return 0, d.fail("Invalid \\uXXXX escape", at+1)
	}
	after := at + 6
	high := r >= surrogateMin && r < surrogateLow
	if high && d.room(after) && d.text[after] == '\\' && d.text[after+1] == 'u' {
		low, ok := hex4(d.text, after+2)
		if !ok {
			return 0, d.fail("Invalid \\uXXXX escape", after+1)
		}
		if low >= surrogateLow && low <= surrogateMax {
			r = 0x10000 + (r-surrogateMin)<<10 + (low - surrogateLow)
			after += 6
		}
	}
	d.buf = appendRune(d.buf, r)
	return after, nil
}

// room reports whether six more characters and one behind them follow: CPython
// looks for the second half of a pair only then.
func (d *decoder) room(at int) bool {
	rest := d.text[at:]
	for range 6 {
		if rest == "" {
			return false
		}
		_, n := utf8.DecodeRuneInString(rest)
		rest = rest[n:]
	}
	return rest != ""
}

func hex4(s string, at int) (rune, bool) {
	if len(s)-at < 4 {
		return 0, false
	}
	var r rune
	for _, c := range []byte(s[at : at+4]) {
		switch {
		case isDigit(c):
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
