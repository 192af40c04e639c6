// Package shellword quotes words for shells.
package shellword

import "strings"

// bareMarks need no quotes, besides ASCII letters and digits.
const bareMarks = "_@%+=:,./-"

// Quote writes a word for a POSIX shell, as Python's shlex.quote does: what needs no
// quotes gets none. A word with a NUL cannot be handed to a program at all.
func Quote(word string) string {
	if word != "" && strings.TrimLeftFunc(word, IsBare) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", QuotedQuote) + "'"
}

// QuotedQuote stands for a single quote in a quoted word.
const QuotedQuote = `'"'"'`

// IsBare reports whether a character means nothing to a shell: a word of such needs no
// quotes.
func IsBare(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(bareMarks, r)
}
