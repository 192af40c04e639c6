package suggest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	words := []string{"oracle", "nop", "command", "scripted", "codex", "codes"}
	for _, tt := range []struct {
		word string
		want []string
	}{
		{"orcale", []string{"oracle"}},
		{"ORACLE", []string{"oracle"}},
		{"comand", []string{"command"}},
		{"code", []string{"codex", "codes"}},
		{"nap", []string{"nop"}},
		{"scr", []string{"scripted"}},
		{"x", nil},
		{"", nil},
		{"somebody", nil},
	} {
		if diff := cmp.Diff(tt.want, Nearest(tt.word, words)); diff != "" {
			t.Errorf("nearest to %q (-want +got):\n%s", tt.word, diff)
		}
	}
}

func TestEditDistance(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "ab", 2}, {"ab", "ba", 1}, {"run", "rnu", 1}, {"kitten", "sitting", 3}, {"é", "e", 1},
	} {
		if got := editDistance(tt.a, tt.b); got != tt.want {
			t.Errorf("%q and %q: got %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := editDistance(tt.b, tt.a); got != tt.want {
			t.Errorf("%q and %q: got %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}
