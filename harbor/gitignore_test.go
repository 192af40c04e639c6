package harbor

import (
	"strings"
	"testing"
)

func TestIgnores(t *testing.T) {
	t.Parallel()
	tests := []struct {
		patterns string // separated by blanks
		path     string
		want     bool
	}{
		{"*.pyc", "a/b/c.pyc", true}, {"*.pyc", "c.pyc/x", true}, {"*.pyc", "c.pyo", false},
		{"build/", "build", false}, {"build/", "build/x", true}, {"build/", "a/build/x/y", true},
		{"/a", "a", true}, {"/a", "a/b", true}, {"/a", "b/a", false},
		{"a/b", "a/b", true}, {"a/b", "x/a/b", false}, {"a/b/", "a/b/c", true},
		{"**/x", "x", true}, {"**/x", "a/b/x", true}, {"a/**", "a/b", true}, {"a/**", "a", false},
		{"a/**/b", "a/b", true}, {"a/**/b", "a/x/y/b", true}, {"**", "a", true}, {"**/", "a", false}, {"**/", "a/b", true},
		{"a/*", "a/b", true}, {"a/*", "a/b/c", true}, {"a?c", "abc", true}, {"a?c", "a/c", false},
		{"[ab].x", "a.x", true}, {"[!ab].x", "a.x", false}, {"[^ab].x", "c.x", true}, {"[a-c]", "b", true}, {"[c-a]", "b", false},
		{`\#a`, "#a", true}, {"#a", "#a", false}, {`\!a`, "!a", true}, {`a\`, "a", false}, {"a[", "a[", true},
		{"*.log !keep.log", "keep.log", false}, {"!keep.log *.log", "keep.log", true}, {"d/ !d/k", "d/k", false},
		{"/", "a", false}, {"é*", "état", true}, {"a.b", "axb", false},
	}
	for _, tt := range tests {
		if got := parseIgnores(strings.Split(tt.patterns, " ")).match(tt.path); got != tt.want {
			t.Errorf("%q leaves out %q: %v", tt.patterns, tt.path, got)
		}
	}
	if !parseIgnores([]string{`a\ `}).match("a ") || !parseIgnores([]string{" a\t"}).match("a") {
		t.Error("white space at the end counts only behind a backslash")
	}
}

func FuzzIgnores(f *testing.F) {
	for _, seed := range [][2]string{{"*.pyc", "a.pyc"}, {"a/**/b", "a/b"}, {"[!a-z]", "x"}, {`\`, "y"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(_ *testing.T, pattern, path string) {
		parseIgnores(strings.Split(pattern, "\n")).match(path)
	})
}
