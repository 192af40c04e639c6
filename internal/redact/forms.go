package redact

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// minLine is the length of the shortest line of a value of several lines, such as a
// key in PEM, that is a secret by itself.
const minLine = 16

// forms lists how a value is written down. None is shorter than [MinLength].
func forms(value string) []string {
	if trimmed := strings.TrimSpace(value); len(trimmed) >= MinLength {
		value = trimmed // which programs print, and which is part of the whole
	}
	list := formsOf(value)
	if strings.ContainsAny(value, "\r\n") {
		for line := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == '\r' || r == '\n' }) {
			if len(line) >= minLine && !strings.HasPrefix(line, "-----") {
				list = append(list, formsOf(line)...)
			}
		}
	}
	return slices.DeleteFunc(list, func(form string) bool { return len(form) < MinLength })
}

func formsOf(value string) []string {
	digits := hex.EncodeToString([]byte(value))
	list := []string{value, digits, strings.ToUpper(digits)}
	for _, text := range jsonForms(value) {
		list = append(list, text)
		list = append(list, jsonForms(text)...) // a document within a document
	}
	for _, text := range percentForms(value) {
		list = append(list, text, lowerEscapes(text))
	}
	return append(list, base64Forms(value)...)
}

// jsonForms are what stands between quotes in documents of encoders that escape as
// little as they may, all that is not ASCII, or what means something in HTML, each
// with and without an escaped slash.
func jsonForms(value string) []string {
	plain := quoted(value, func(r rune) bool { return r < ' ' })
	list := []string{
		plain, quoted(value, func(r rune) bool { return r < ' ' || r > '~' }),
		quoted(value, func(r rune) bool { return r < ' ' || strings.ContainsRune("<>&\u2028\u2029", r) }),
	}
	for _, text := range slices.Clone(list) {
		list = append(list, strings.ReplaceAll(text, "/", `\/`))
	}
	return list
}

var shortEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}

func quoted(value string, escape func(rune) bool) string {
	var b strings.Builder
	for i, r := range value {
		switch short, ok := shortEscapes[r]; {
		case ok:
			b.WriteString(short)
		case r == utf8.RuneError && value[i] != 0xEF: // no UTF-8: as it is
			b.WriteByte(value[i])
		case !escape(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// percentForms are what URLs have, with hexadecimal digits in upper case.
func percentForms(value string) []string {
	const unreserved = "-._~"
	return []string{
		url.QueryEscape(value), url.PathEscape(value), escaped(value, unreserved), escaped(value, unreserved+"/"),
		escaped(value, unreserved+"!'()*"), all(value),
	}
}

// escaped keeps letters, digits and some other characters.
func escaped(value, keep string) string {
	var b strings.Builder
	for i := range len(value) {
		c := value[i]
		if '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || strings.IndexByte(keep, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func all(value string) string {
	var b strings.Builder
	for i := range len(value) {
		fmt.Fprintf(&b, "%%%02X", value[i])
	}
	return b.String()
}

// lowerEscapes writes the digits of escapes in lower case.
func lowerEscapes(text string) string {
	b := []byte(text)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], strings.ToLower(text[i+1:i+3]))
			i += 2
		}
	}
	return string(b)
}

// base64Forms are the characters that a value makes wherever it stands in what is
// encoded: those that depend also on what is before or behind it are left out.
func base64Forms(value string) []string {
	var list []string
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			text := enc.EncodeToString([]byte(strings.Repeat("\x00", before) + value))
			from := (8*before + 5) / 6            // the first that has no bit of before
			to := (8 * (before + len(value))) / 6 // the first that has a bit behind
			list = append(list, text[from:to])
		}
	}
	return list
}
