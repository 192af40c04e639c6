package guest

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestPauseBefore: what is left of memory is looked at before the fastest command can
// have filled it, but not all the time.
func TestPauseBefore(t *testing.T) {
	t.Parallel()
	for left, want := range map[int64]time.Duration{
		0: soonest, 1 << 20: soonest, 64 << 20: 15625 * time.Microsecond, 512 << 20: 125 * time.Millisecond, 64 << 30: latest, 1 << 50: latest,
	} {
		if got := pauseBefore(left); got != want {
			t.Errorf("%d bytes left: %v, want %v", left, got, want)
		}
	}
}

func TestReadCount(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"12\n": 12, "0": 0, "max\n": -1, "": -1} {
		name := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the file says something new each time
			if got, err := readCount(f); (err != nil) != (want < 0) || (err == nil && got != want) {
				t.Errorf("%q: got %d, %v", text, got, err)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
