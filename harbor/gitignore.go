package harbor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/value"
)

// ignoreList is the content of a .gitignore. Patterns are matched against
// slash-separated paths of files; of all that match, the last decides, whatever
// directories above the file match.
type ignoreList []ignoreRule

type ignoreRule struct {
	include bool // a "!" pattern, which takes files back in
	form    *regexp.Regexp
}

// match reports whether a file is to be left out.
func (l ignoreList) match(path string) bool {
	for _, rule := range slices.Backward(l) {
		if rule.form.MatchString(path) {
			return !rule.include
		}
	}
	return false
}

// parseIgnores reads lines. Blank ones, comments and malformed patterns match
// nothing.
func parseIgnores(lines []string) ignoreList {
	var list ignoreList
	for _, line := range lines {
		if strings.HasSuffix(line, `\ `) {
			line = strings.TrimLeft(line, " \t")
		} else {
			line = value.Strip(line)
		}
		if line == "" || line == "/" || line[0] == '#' {
			continue
		}
		pattern, include := strings.CutPrefix(line, "!")
		text, ok := ignorePattern(pattern)
		if !ok {
			continue
		}
		if form, err := regexp.Compile(text); err == nil {
			list = append(list, ignoreRule{include: include, form: form})
		}
	}
	return list
}

// ignorePattern translates a pattern to a regular expression over whole paths.
// A pattern without a slash, other than at its end, matches at any depth; one
// for a directory matches what is below it.
func ignorePattern(pattern string) (string, bool) {
	segments := slices.CompactFunc(strings.Split(pattern, "/"), func(a, b string) bool { return a == "**" && b == "**" })
	if len(segments) == 2 && segments[0] == "**" && segments[1] == "" {
		return `(?s)^.+/.*$`, true
	}
	if segments = anchored(segments); len(segments) == 0 {
		return "", false
	}
	var b strings.Builder
	b.WriteString("(?s)^")
	slash := false // whether a slash must come before the next segment
	for i, segment := range segments {
		last := i == len(segments)-1
		if segment == "**" {
			slash = anyDepth(&b, i == 0, last, slash)
			continue
		}
		if slash {
			b.WriteByte('/')
		}
		if !ignoreSegment(&b, segment) {
			return "", false
		}
		if last {
			b.WriteString(`(?:/.*)?`)
		}
		slash = true
	}
	b.WriteByte('$')
	return b.String(), true
}

// anchored returns the segments of a pattern for whole paths: where it may begin
// at any depth, and what it matches below a directory, is written as "**".
func anchored(segments []string) []string {
	switch {
	case segments[0] == "":
		segments = segments[1:]
	case segments[0] != "**" && (len(segments) == 1 || len(segments) == 2 && segments[1] == ""):
		segments = slices.Insert(segments, 0, "**")
	}
	if last := len(segments) - 1; last > 0 && segments[last] == "" {
		segments[last] = "**"
	}
	return segments
}

// anyDepth writes what "**" stands for, and returns whether a slash must follow.
func anyDepth(b *strings.Builder, first, last, slash bool) bool {
	switch {
	case first && last:
		b.WriteString(`[^/]+(?:/.*)?`)
	case first:
		b.WriteString(`(?:.+/)?`)
		return false
	case last:
		b.WriteString(`/.*`)
	default:
		b.WriteString(`(?:/.+)?`)
		return true
	}
	return slash
}

// ignoreSegment writes one path segment.
func ignoreSegment(b *strings.Builder, segment string) bool {
	if segment == "*" {
		b.WriteString("[^/]+")
		return true
	}
	s := []rune(segment)
	for i := 0; i < len(s); {
		c := s[i]
		i++
		switch c {
		case '\\':
			if i == len(s) {
				return false
			}
			b.WriteString(regexp.QuoteMeta(string(s[i])))
			i++
		case '*':
			b.WriteString("[^/]*")
		case '?':
			b.WriteString("[^/]")
		case '[':
			end := ignoreBracket(s, i)
			if end < 0 {
				b.WriteString(`\[`)
				continue
			}
			if !writeSet(b, s[i:end]) {
				return false
			}
			i = end + 1
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	return true
}

func ignoreBracket(s []rune, i int) int {
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		i++
	}
	if i < len(s) && s[i] == ']' {
		i++
	}
	if n := slices.Index(s[min(i, len(s)):], ']'); n >= 0 {
		return i + n
	}
	return -1
}

// writeSet writes a set of characters; ranges that run backwards are malformed.
func writeSet(b *strings.Builder, set []rune) bool {
	b.WriteByte('[')
	if len(set) > 0 && (set[0] == '!' || set[0] == '^') {
		b.WriteByte('^')
		set = set[1:]
	}
	for i := 0; i < len(set); i++ {
		from, to := set[i], set[i]
		if i+2 < len(set) && set[i+1] == '-' {
			to = set[i+2]
			i += 2
		}
		if from > to {
			return false
		}
		fmt.Fprintf(b, `\x{%x}-\x{%x}`, from, to)
	}
	b.WriteByte(']')
	return true
}
