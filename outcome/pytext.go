package outcome

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// isAlnum is Python's str.isalnum of one character.
func isAlnum(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// lower is Python's str.lower: Unicode's full lower-casing. Only two characters
// differ from the simple mapping. Text is WTF-8; what is no character stays.
func lower(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteByte(s[i])
		case r == 'İ':
			b.WriteString("i\u0307")
		case r == 'Σ' && endsWord(s[:i], s[i+size:]):
			b.WriteRune('ς')
		default:
			b.WriteRune(unicode.ToLower(r))
		}
		i += size
	}
	return b.String()
}

// endsWord reports whether a sigma between two texts is a final one: a cased
// character comes before it and none after, those aside that have no say.
func endsWord(before, after string) bool {
	r, _ := utf8.DecodeLastRuneInString(strings.TrimRightFunc(before, isCaseIgnorable))
	if !isCased(r) {
		return false
	}
	r, _ = utf8.DecodeRuneInString(strings.TrimLeftFunc(after, isCaseIgnorable))
	return !isCased(r)
}

// isCased is Unicode's property Cased.
func isCased(r rune) bool {
	return unicode.In(r, unicode.Lower, unicode.Upper, unicode.Title, unicode.Other_Lowercase, unicode.Other_Uppercase)
}

// isCaseIgnorable is Unicode's property Case_Ignorable: categories Mn, Me, Cf,
// Lm, Sk, and the characters that break no word.
func isCaseIgnorable(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) ||
		strings.ContainsRune("':.·\u0387\u055F\u05F4\u2018\u2019\u2024\u2027\uFE13\uFE52\uFE55\uFF07\uFF0E\uFF1A", r)
}

// isLineEnd tells the characters at which Python's str.splitlines splits.
func isLineEnd(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}

// lines is Python's str.splitlines for text without CR LF.
func lines(s string) []string {
	var out []string
	for s != "" {
		end := strings.IndexFunc(s, isLineEnd)
		if end < 0 {
			return append(out, s)
		}
		_, size := utf8.DecodeRuneInString(s[end:])
		out = append(out, s[:end])
		s = s[end+size:]
	}
	return out
}

// cut is s[:n] in characters, of which a lone surrogate is one.
func cut(s string, n int) (head string, longer bool) {
	for i := 0; i < len(s); n-- {
		if n == 0 {
			return s[:i], true
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		if size == 1 && i+2 < len(s) && s[i] == 0xED && s[i+1] >= 0xA0 {
			size = 3
		}
		i += size
	}
	return s, false
}
