package value

import (
	"strings"
	"unicode"
)

// Repr returns Python's repr(v): None, True, 1, 1.0, 'text', ['a', 1], {'k': 1}.
// Ints have no limit of digits here.
func Repr(v Value) string { return string(AppendRepr(nil, v)) }

// AppendRepr appends [Repr] to dst.
func AppendRepr(dst []byte, v Value) []byte {
	switch v := v.(type) {
	case Bool:
		if v {
			return append(dst, "True"...)
		}
		return append(dst, "False"...)
	case Int:
		return v.Append(dst)
	case Float:
		return AppendFloatRepr(dst, float64(v))
	case Str:
		return appendStrRepr(dst, string(v))
	case List:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = AppendRepr(dst, e)
		}
		return append(dst, ']')
	case *Object:
		if v != nil {
			return appendObjectRepr(dst, v)
		}
	}
	return append(dst, "None"...)
}

func appendObjectRepr(dst []byte, o *Object) []byte {
	dst = append(dst, '{')
	for i, m := range o.members {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = appendStrRepr(dst, m.key)
		dst = append(dst, ": "...)
		dst = AppendRepr(dst, m.value)
	}
	return append(dst, '}')
}

func appendStrRepr(dst []byte, s string) []byte {
	quote := byte('\'')
	if strings.IndexByte(s, '\'') >= 0 && strings.IndexByte(s, '"') < 0 {
		quote = '"'
	}
	dst = append(dst, quote)
	for s != "" {
		r, n := decodeRune(s)
		s = s[n:]
		switch {
		case r == rune(quote) || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\r':
			dst = append(dst, `\r`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case unicode.IsPrint(r):
			dst = appendRune(dst, r)
		default:
			dst = appendReprEscape(dst, r)
		}
	}
	return append(dst, quote)
}

func appendReprEscape(dst []byte, r rune) []byte {
	prefix, digits := byte('x'), 2
	switch {
	case r > 0xFFFF:
		prefix, digits = 'U', 8
	case r > 0xFF:
		prefix, digits = 'u', 4
	}
	dst = append(dst, '\\', prefix)
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		dst = append(dst, hexDigits[r>>shift&15])
	}
	return dst
}
