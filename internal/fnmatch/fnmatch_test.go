package fnmatch_test

import (
	"testing"

	"github.com/proctor-run/proctor/internal/fnmatch"
)

// The answers are those of Python's fnmatchcase.
func TestMatch(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true}, {"*", "a/b", true}, {"a*c", "abcbc", true}, {"a*c", "abcb", false},
		{"?", "é", true}, {"?", "", false}, {"a?c", "a\nc", true},
		{"[ab]", "b", true}, {"[ab]", "c", false}, {"[!ab]", "c", true}, {"[!ab]", "a", false},
		{"[a-c]x", "bx", true}, {"[]]", "]", true}, {"[!]]", "]", false}, {"[a", "[a", true}, {"[", "[", true},
		{"[-a]", "-", true}, {"[a-]", "-", true}, {"[c-a]", "b", false}, {"[c-a]", "c", false}, {"[!c-a]", "c", true},
		{"[c-ax]", "x", true}, {"[c-b!x]", "x", false}, {"[c-b!x]", "y", true}, {"[a--!-^^]", "-", false}, {"[a--!-^^]", "a", true}, {"[^a]", "^", true}, {`[\]`, `\`, true}, {`\*`, `\x`, true},
		{"A", "a", false}, {"**", "x", true}, {"a[b", "a[b", true}, {"", "", true}, {"", "a", false},
	}
	for _, tt := range tests {
		if got := fnmatch.Match(tt.pattern, tt.name); got != tt.want {
			t.Errorf("Match(%q, %q) = %v", tt.pattern, tt.name, got)
		}
	}
}

func FuzzMatch(f *testing.F) {
	for _, seed := range [][2]string{{"a*b", "ab"}, {"[a-c]", "b"}, {"[a--!-^^]", "x"}, {"[!", "["}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if !fnmatch.Match("*", name) {
			t.Errorf("* does not match %q", name)
		}
		fnmatch.Match(pattern, name)
	})
}
