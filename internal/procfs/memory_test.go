package procfs_test

import (
	"testing"

	"github.com/proctor-run/proctor/internal/procfs"
)

func TestParseMemTotal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"MemTotal:       24581192 kB\nMemFree: 1 kB\n": 24581192,
		"Other: 1\nMemTotal: 7 kB":                     7,
		"MemTotal: 7 MB\n":                             0,
		"MemTotal: 7\n":                                0,
		"MemTotal: x kB\n":                             0,
		"MemTotal: 99999999999999999999 kB\n":          0,
		"":                                             0,
	} {
		got, err := procfs.ParseMemTotal([]byte(text))
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("%q: got %d, %v", text, got, err)
		}
	}
	if got, err := procfs.ParseAnonPages([]byte("MemTotal: 9 kB\nAnonPages:      12 kB\n")); got != 12 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
}
