package bounded_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/proctor-run/proctor/internal/bounded"
)

func TestShorten(t *testing.T) {
	t.Parallel()
	if got, cut := bounded.Shorten("short\xff", 3); cut || got != "short\xff" {
		t.Errorf("%q, %v", got, cut)
	}
	long := "begin" + strings.Repeat("é", 1000) + "end"
	got, cut := bounded.Shorten(long, 21)
	if want := "begin" + "éé" + "\n[1990 bytes are left out here]\n" + "ééé" + "end"; !cut || got != want {
		t.Errorf("%q, %v, want %q", got, cut, want)
	}
	for keep := range 20 {
		if got, _ := bounded.Shorten(long, keep); !utf8.ValidString(got) {
			t.Errorf("%d: %q", keep, got)
		}
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"aé", 2, "a"}, {"a\xff", 2, "a\uFFFD"}} {
		if got := bounded.Head(c.text, c.n); got != c.want {
			t.Errorf("%q, %d: %q, want %q", c.text, c.n, got, c.want)
		}
	}
}
