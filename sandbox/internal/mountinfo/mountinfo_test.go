package mountinfo

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	t.Parallel()
	got := Parse("22 27 0:21 / /proc rw shared:1 master:2 - proc proc rw\n" +
		"28 27 0:25 / /with\\040blank\\134 ro - tmpfs none ro,size=4k\nbroken\n1 2 - \n")
	want := []Mount{{"22", "/proc", "proc"}, {"28", `/with blank\`, "tmpfs"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The kernel escapes blanks, newlines and backslashes in octal.
func TestUnescape(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.StringOf(rapid.RuneFrom([]rune{'a', '0', '7', ' ', '\t', '\n', '\\', 'é'})).Draw(t, "path")
		escaped := strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace(want)
		if got := unescape(escaped); got != want {
			t.Errorf("unescaping %q: got %q, want %q", escaped, got, want)
		}
	})
	for _, odd := range []string{`\`, `\0`, `\04`, `\999`, `a\b`} {
		if got := unescape(odd); got != odd {
			t.Errorf("%q became %q", odd, got)
		}
	}
}

func TestBelow(t *testing.T) {
	t.Parallel()
	mounts := []Mount{{"1", "/", "ext4"}, {"2", "/a", "tmpfs"}, {"3", "/a/b", "tmpfs"}, {"4", "/ab", "tmpfs"}}
	for dir, want := range map[string][]Mount{"/": mounts[1:], "/a": mounts[2:3], "/ab": nil} {
		if got := Below(mounts, dir); !slices.Equal(got, want) {
			t.Errorf("below %s: got %q, want %q", dir, got, want)
		}
	}
}
