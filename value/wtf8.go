package value

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The surrogate code points.
const (
	surrogateMin = 0xD800
	surrogateLow = 0xDC00
	surrogateMax = 0xDFFF
)

// decodeRune returns the first code point of WTF-8 text and its length. Bytes
// that begin no sequence give U+FFFD and 1.
func decodeRune(s string) (rune, int) {
	r, n := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && n == 1 && surrogateAt(s) {
		return rune(s[0]&0x0F)<<12 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F), 3
	}
	return r, n
}

// surrogateAt reports whether s begins with the generalised form of a surrogate.
func surrogateAt(s string) bool {
	return len(s) >= 3 && s[0] == 0xED && s[1] >= 0xA0 && s[1] <= 0xBF && s[2] >= 0x80 && s[2] <= 0xBF
}

// appendRune appends a code point, which may be a surrogate, in WTF-8.
func appendRune(dst []byte, r rune) []byte {
	if r >= surrogateMin && r <= surrogateMax {
		return append(dst, 0xED, 0x80|byte(r>>6&0x3F), 0x80|byte(r&0x3F))
	}
	return utf8.AppendRune(dst, r)
}

// HasSurrogate reports whether the text holds a lone surrogate. Python cannot
// write such text to a file, and pydantic refuses it in most places.
func HasSurrogate(s string) bool {
	for {
		i := strings.IndexByte(s, 0xED)
		if i < 0 {
			return false
		}
		s = s[i:]
		if surrogateAt(s) {
			return true
		}
		s = s[1:]
	}
}

// ReadText turns the bytes of a text file into text as Python's text mode does:
// strict UTF-8, a byte-order mark kept, and CR LF and CR read as LF. Bytes that
// are not UTF-8 are a UnicodeDecodeError. (Reward semantics, section 2.1.)
func ReadText(data []byte) (string, error) {
	if !utf8.Valid(data) {
		return "", notUTF8(data)
	}
	text := string(data)
	if strings.IndexByte(text, '\r') < 0 {
		return text, nil
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.ReplaceAll(text, "\r", "\n"), nil
}

func notUTF8(data []byte) *Error {
	at := 0
	for at < len(data) {
		r, n := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	first, last, reason := badSequence(data[at:])
	err := raise(UnicodeDecodeError, "'utf-8' codec can't decode bytes in position %d-%d: %s", at, at+last, reason)
	if first == last {
		err = raise(UnicodeDecodeError, "'utf-8' codec can't decode byte 0x%02x in position %d: %s", data[at], at, reason)
	}
	line := 1 + bytes.Count(data[:at], []byte("\n"))
	err.Plain = fmt.Sprintf("it is not UTF-8 text: byte 0x%02x at offset %d, in line %d", data[at], at, line)
	return err
}

// badSequence describes the malformed sequence that data begins with: the
// offsets of its first and last byte and CPython's word for what is wrong.
func badSequence(data []byte) (first, last int, reason string) {
	want, low, high := following(data[0])
	for i := 1; i <= want; i++ {
		if i == len(data) {
			return 0, i - 1, "unexpected end of data"
		}
		if data[i] < low || data[i] > high {
			return 0, i - 1, "invalid continuation byte"
		}
		low, high = 0x80, 0xBF
	}
	return 0, 0, "invalid start byte"
}

// following returns how many bytes belong to a sequence behind its first byte,
// none where no sequence begins with that, and the range that the first of them
// lies in.
func following(lead byte) (n int, low, high byte) {
	low, high = 0x80, 0xBF
	switch lead {
	case 0xE0:
		low = 0xA0
	case 0xED:
		high = 0x9F
	case 0xF0:
		low = 0x90
	case 0xF4:
		high = 0x8F
	}
	switch {
	case lead < 0xC2 || lead > 0xF4:
		return 0, low, high
	case lead < 0xE0:
		return 1, low, high
	case lead < 0xF0:
		return 2, low, high
	}
	return 3, low, high
}
