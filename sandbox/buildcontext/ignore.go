package buildcontext

import (
	"bufio"
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Ignore is a parsed .dockerignore: patterns in order, the last that matches a
// file decides.
type Ignore struct {
	rules     []ignoreRule
	exception bool // some rule lets in again what others keep out
}

type ignoreRule struct {
	keep    bool // the pattern began with "!"
	pattern *regexp.Regexp
}

// ParseIgnore reads a .dockerignore (Dockerfile reference, .dockerignore
// files): one pattern a line as Go's filepath.Match has them, relative to the
// context's root, besides ** for any number of directories and ! for
// exceptions; # begins a comment. A pattern that matches a directory matches
// all below it.
func ParseIgnore(text []byte) (Ignore, error) {
	var ig Ignore
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		line = strings.TrimSpace(line)
		pattern, keep := strings.CutPrefix(line, "!")
		pattern = strings.TrimSpace(pattern)
		if pattern == "" {
			if keep {
				return Ignore{}, fmt.Errorf("reading .dockerignore: line %d: %q has no pattern", n, line)
			}
			continue
		}
		pattern = strings.TrimPrefix(path.Clean(pattern), "/")
		if pattern == "" {
			continue
		}
		re, err := ignorePattern(pattern)
		if err != nil {
			return Ignore{}, fmt.Errorf("reading .dockerignore: line %d: pattern %q: %w", n, line, err)
		}
		ig.rules = append(ig.rules, ignoreRule{keep: keep, pattern: re})
		ig.exception = ig.exception || keep
	}
	if err := lines.Err(); err != nil {
		return Ignore{}, fmt.Errorf("reading .dockerignore: %w", err)
	}
	return ig, nil
}

// ignorePattern translates a pattern. It is anchored at both ends and matches
// with a "/" behind it, see Excludes.
func ignorePattern(pattern string) (*regexp.Regexp, error) {
	if _, err := path.Match(pattern, "x"); err != nil {
		return nil, fmt.Errorf("reading it as a glob: %w", err)
	}
	var re strings.Builder
	re.WriteString("^")
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i:]
		switch {
		case rest == "**":
			re.WriteString(".*")
			i++
		case strings.HasPrefix(rest, "**"):
			re.WriteString("(?:.*/)?")
			i++
			if strings.HasPrefix(rest, "**/") {
				i++
			}
		case rest[0] == '*':
			re.WriteString("[^/]*")
		case rest[0] == '?':
			re.WriteString("[^/]")
		case rest[0] == '\\' && len(rest) > 1:
			re.WriteString(regexp.QuoteMeta(rest[1:2]))
			i++
		case rest[0] == '[':
			class, length := ignoreClass(rest)
			re.WriteString(class)
			i += length - 1
		default:
			re.WriteString(regexp.QuoteMeta(rest[:1]))
		}
	}
	re.WriteString("$")
	compiled, err := regexp.Compile(re.String())
	if err != nil {
		return nil, fmt.Errorf("reading it as a glob: %w", err)
	}
	return compiled, nil
}

// ignoreClass translates a character class, which has been found well formed,
// and returns its length in the pattern.
func ignoreClass(pattern string) (string, int) {
	var re strings.Builder
	re.WriteString("[")
	i := 1
	if i < len(pattern) && pattern[i] == '^' {
		re.WriteString("^")
		i++
	}
	for ; i < len(pattern) && pattern[i] != ']'; i++ {
		switch {
		case pattern[i] == '\\' && i+1 < len(pattern):
			i++
			re.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		case pattern[i] == '-':
			re.WriteString("-")
		default:
			re.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	re.WriteString("]")
	return re.String(), min(i+1, len(pattern))
}

// Excludes reports whether a file or directory (slash-separated, relative) is
// left out of the context.
func (ig Ignore) Excludes(name string) bool {
	out := false
	for _, r := range ig.rules {
		if r.keep != out {
			continue // it changes nothing
		}
		for at := name; at != "."; at = path.Dir(at) {
			if r.pattern.MatchString(at) {
				out = !out
				break
			}
		}
	}
	return out
}
