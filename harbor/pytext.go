package harbor

import "strings"

// lower is Python's str.lower as far as it matters for ASCII results: a
// capital I with dot becomes an i and a combining mark, not an i.
func lower(s string) string {
	return strings.ToLower(strings.ReplaceAll(s, "İ", "i\u0307"))
}
