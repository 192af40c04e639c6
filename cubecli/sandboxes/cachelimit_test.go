package sandboxes

import "testing"

func TestParseSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0": 0, "1024": 1024, "20GB": 20e9, "20 gb": 20e9, "1.5GiB": 3 << 29, "10k": 10000, "2TiB": 2 << 40,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%q is %d (%v), want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "GB", "-1GB", "20XB", "1e300TB", "twenty", "NaN", "99999999TB"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q is %d, want an error", text, got)
		}
	}
}
