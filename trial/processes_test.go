package trial

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestParseProcesses(t *testing.T) {
	t.Parallel()
	stat := func(head string) string { return head + strings.Repeat(" 0", 17) + " 77 0 0 0\n" }
	list := stat("1 (init) S 0") + stat("5 (sleep) S 1") + stat("6 (a) b (c) S 1") + stat("7 (dead) Z 1") +
		stat("8 (sh) S 0") + stat("9 (bash) S 8") + stat("10 (cat) R 9") + stat("11 (cat) S 8") + "garbage\n12 (short) S 1\n" + "\n9\n"
	got := parseProcesses([]byte(list))
	if want := []string{"a) b (c", "sleep"}; !slices.Equal(slices.Sorted(maps.Values(got)), want) {
		t.Errorf("got %v, want %q", got, want)
	}
	if got["5 77"] != "sleep" {
		t.Errorf("keys: %v", got)
	}
	// Names with newlines, as gVisor shows them, hide no process.
	list = stat("5 (a\nb) S 1") + stat("6 (\n\n99\n) S 1") + stat("7 (c\n8 (d) S 1") + stat("10 (cat) R 9") + "\n10\n"
	want := processes{"5 77": "a\nb", "6 77": "\n\n99\n", "7 77": "c\n8 (d"}
	if got := parseProcesses([]byte(list)); !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, text := range []string{"", "\n\n", "1 (x", "\n\n1\n"} {
		if got := parseProcesses([]byte(text)); len(got) != 0 {
			t.Errorf("%q gives %v", text, got)
		}
	}
}

func FuzzParseProcesses(f *testing.F) {
	f.Add([]byte("5 (sleep) S 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 77 0 0 0\n\n9\n"))
	f.Add([]byte("5 (a) (b) S 6\n6 (c) S 5\n\n5\n"))
	f.Fuzz(func(t *testing.T, list []byte) {
		for id := range parseProcesses(list) {
			if !strings.Contains(id, " ") {
				t.Errorf("key %q", id)
			}
		}
	})
}
