package shellword_test

import (
	"testing"

	"github.com/proctor-run/proctor/internal/shellword"
)

func TestQuote(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"": "''", "a": "a", "--x=/a,b.c:d@e%f+g_1": "--x=/a,b.c:d@e%f+g_1", "two words": "'two words'",
		"it's": `'it'"'"'s'`, "$HOME": "'$HOME'", "a\nb": "'a\nb'", "é": "'é'", "\xff": "'\xff'", "~": "'~'", "!": "'!'",
	} {
		if got := shellword.Quote(word); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}
