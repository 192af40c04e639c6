// Package console makes the texts that commands print: safe for a terminal,
// whatever they hold.
package console

import (
	"fmt"
	"strings"
)

// Clean makes text from outside safe for a terminal and a single line.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r < 0x20 || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || isBidi(r):
			return '\ufffd'
		}
		return r
	}, s)
}

// isBidi reports characters that reorder what is shown.
func isBidi(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// Count is a number of things with their name.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %s", n, plural(what))
}

// plural is regular: a try has tries, a day days, a process processes.
func plural(noun string) string {
	stem, y := strings.CutSuffix(noun, "y")
	switch {
	case y && strings.TrimRight(stem, "aeiou") == stem:
		return stem + "ies"
	case strings.HasSuffix(noun, "s"):
		return noun + "es"
	}
	return noun + "s"
}

// CountHave is Count with the verb "to have" behind it.
func CountHave(n int, what string) string {
	if n == 1 {
		return "1 " + what + " has"
	}
	return Count(n, what) + " have"
}

// CountGive is Count with the verb "to give" behind it.
func CountGive(n int, what string) string {
	if n == 1 {
		return "1 " + what + " gives"
	}
	return Count(n, what) + " give"
}

// TitleCase has its first letter in upper case.
func TitleCase(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
