package value

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// AppendPydantic appends v as pydantic's model_dump_json writes it: names and
// strings in raw UTF-8, floats as [AppendPydanticFloat], no space with indent 0,
// else one member per line indented by that many spaces per level; empty
// containers stay {} and []. Each byte of a lone surrogate becomes U+FFFD, as
// pydantic does in names; where it refuses such text, ask [HasSurrogate] before.
// (Reward semantics, section 6; Harbor result JSON, section 5.2.)
func AppendPydantic(dst []byte, v Value, indent int) []byte {
	w := pydanticWriter(indent)
	return w.value(dst, v, 0)
}

func pydanticWriter(indent int) writer {
	w := writer{
		item: ",", key: ":",
		float: AppendPydanticFloat,
		text:  appendPydanticString,
	}
	if indent > 0 {
		w.indent, w.key = indent, ": "
	}
	return w
}

// DumpsOptions are the arguments of json.dumps. The zero value is its default:
// one line, ", " and ": ", ASCII only.
type DumpsOptions struct {
	// Indent is the number of spaces per level; 0 means one line.
	Indent int
	// ItemSeparator and KeySeparator replace the defaults, which are ", " (","
	// with an indent) and ": ".
	ItemSeparator, KeySeparator string
	// Unicode leaves characters beyond ASCII as they are (ensure_ascii=False).
	// Lone surrogates then stay in the output as WTF-8.
	Unicode bool
	// SortKeys orders names by code point.
	SortKeys bool
}

// AppendDumps appends v as Python's json.dumps writes it: floats as
// [AppendFloatRepr] but NaN, Infinity and -Infinity. Ints have no limit of digits
// here.
func AppendDumps(dst []byte, v Value, o DumpsOptions) []byte {
	w := writer{
		item: o.ItemSeparator, key: o.KeySeparator,
		indent: o.Indent, sort: o.SortKeys,
		float: appendDumpsFloat,
		text:  appendASCIIString,
	}
	if w.item == "" {
		w.item = ", "
		if o.Indent > 0 {
			w.item = ","
		}
	}
	if w.key == "" {
		w.key = ": "
	}
	if o.Unicode {
		w.text = appendUnicodeString
	}
	return w.value(dst, v, 0)
}

func appendDumpsFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	}
	return AppendFloatRepr(dst, f)
}

// writer is one layout of JSON.
type writer struct {
	item, key string
	indent    int
	sort      bool
	float     func([]byte, float64) []byte
	text      func([]byte, string) []byte
}

func (w *writer) value(dst []byte, v Value, level int) []byte {
	switch v := v.(type) {
	case Bool:
		if v {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case Int:
		return v.Append(dst)
	case Float:
		return w.float(dst, float64(v))
	case Str:
		return w.text(dst, string(v))
	case List:
		return w.list(dst, v, level+1)
	case *Object:
		if v != nil {
			return w.object(dst, v, level+1)
		}
	}
	return append(dst, "null"...)
}

func (w *writer) list(dst []byte, list List, level int) []byte {
	if len(list) == 0 {
		return append(dst, "[]"...)
	}
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, w.item...)
		}
		dst = w.value(w.line(dst, level), v, level)
	}
	return append(w.line(dst, level-1), ']')
}

func (w *writer) object(dst []byte, o *Object, level int) []byte {
	if len(o.members) == 0 {
		return append(dst, "{}"...)
	}
	members := o.members
	if w.sort {
		members = slices.Clone(members)
		slices.SortStableFunc(members, func(a, b member) int { return strings.Compare(a.key, b.key) })
	}
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, w.item...)
		}
		dst = w.text(w.line(dst, level), m.key)
		dst = append(dst, w.key...)
		dst = w.value(dst, m.value, level)
	}
	return append(w.line(dst, level-1), '}')
}

// line begins a new line, if there are lines.
func (w *writer) line(dst []byte, level int) []byte {
	if w.indent == 0 {
		return dst
	}
	dst = append(dst, '\n')
	for range level * w.indent {
		dst = append(dst, ' ')
	}
	return dst
}

const hexDigits = "0123456789abcdef"

// appendControl appends the escape of a quote, a backslash or a control
// character.
func appendControl(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return appendUnicodeEscape(dst, rune(c))
}

func appendUnicodeEscape(dst []byte, r rune) []byte {
	return append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

func appendPydanticString(dst []byte, s string) []byte {
	return appendRawString(dst, s, false)
}

func appendUnicodeString(dst []byte, s string) []byte {
	return appendRawString(dst, s, true)
}

func appendRawString(dst []byte, s string, surrogates bool) []byte {
	dst = append(dst, '"')
	for start := 0; ; {
		end := skipASCII(s, start)
		dst = append(dst, s[start:end]...)
		if end == len(s) {
			return append(dst, '"')
		}
		start = end + 1
		if c := s[end]; c < utf8.RuneSelf {
			dst = appendControl(dst, c)
			continue
		}
		r, n := utf8.DecodeRuneInString(s[end:])
		if surrogates && n == 1 && surrogateAt(s[end:]) {
			dst = append(dst, s[end:end+3]...)
			start = end + 3
			continue
		}
		dst = utf8.AppendRune(dst, r)
		start = end + n
	}
}

// skipASCII returns the end of the run of bytes that all layouts write as they
// are; U+007F is one of them except with ensure_ascii.
func skipASCII(s string, i int) int {
	for i < len(s) && s[i] < utf8.RuneSelf && plain[s[i]] {
		i++
	}
	return i
}

func appendASCIIString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for start := 0; start < len(s); {
		c := s[start]
		switch {
		case c == 0x7F:
			dst = appendUnicodeEscape(dst, rune(c))
			start++
		case c < utf8.RuneSelf && plain[c]:
			dst = append(dst, c)
			start++
		case c < utf8.RuneSelf:
			dst = appendControl(dst, c)
			start++
		default:
			r, n := decodeRune(s[start:])
			if r > 0xFFFF {
				dst = appendUnicodeEscape(dst, surrogateMin+(r-0x10000)>>10)
				r = surrogateLow + (r-0x10000)&0x3FF
			}
			dst = appendUnicodeEscape(dst, r)
			start += n
		}
	}
	return append(dst, '"')
}
