package bounded

import (
	"fmt"
	"strings"
)

// Clean replaces what is no character, which models and clients refuse.
func Clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// Head is the beginning of a text, whole characters of at most n bytes. A text that is
// no longer than that is cleaned.
func Head(s string, n int) string {
	if len(s) <= n {
		return Clean(s)
	}
	return strings.ToValidUTF8(s[:n], "")
}

// tail is the end of a text, whole characters of at most n bytes.
func tail(s string, n int) string {
	if len(s) > n {
		s = s[len(s)-n:]
		for len(s) > 0 && s[0]&0xC0 == 0x80 { // inside a character
			s = s[1:]
		}
	}
	return Clean(s)
}

// markRoom is how many bytes more than a bound a text may have: one that is hardly
// longer is left as it is, as the mark of the cut takes room, too.
const markRoom = 100

// Shorten keeps the beginning and the end of a text that has more than about keep bytes,
// and says between them how many are left out. It reports whether it did.
func Shorten(s string, keep int) (short string, cut bool) {
	if len(s) <= keep+markRoom {
		return s, false
	}
	begin, end := Head(s, keep/2), tail(s, keep/2)
	return fmt.Sprintf("%s\n[%d bytes are left out here]\n%s", begin, len(s)-len(begin)-len(end), end), true
}
