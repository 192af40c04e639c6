package harbor

import (
	"strings"
	"unicode"
)

// strip removes what Python's str.strip removes.
func strip(s string) string { return strings.TrimFunc(s, isSpace) }

// isSpace is Python's str.isspace of one character: Unicode white space and
// the four ASCII separators.
func isSpace(r rune) bool { return unicode.IsSpace(r) || (r >= 0x1c && r <= 0x1f) }

// lower is Python's str.lower as far as it matters for ASCII results: a
// capital I with dot becomes an i and a combining mark, not an i.
func lower(s string) string {
	return strings.ToLower(strings.ReplaceAll(s, "İ", "i\u0307"))
}
