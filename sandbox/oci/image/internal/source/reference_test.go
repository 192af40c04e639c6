package source

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSplitTag(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	for _, name := range []string{"plain", "with:colon", "with"} {
		if err := os.Mkdir(filepath.Join(base, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct{ in, path, tag string }{
		{"plain", "plain", ""},
		{"plain:v1", "plain", "v1"},
		{"plain:debian:12", "plain", "debian:12"},
		{"with:colon", "with:colon", ""},
		{"with:colon:12", "with:colon", "12"},
		{"with:other", "with", "other"},
		{"missing:x", "missing:x", ""},
	} {
		path, tag := splitTag(filepath.Join(base, tc.in))
		if path != filepath.Join(base, tc.path) || tag != tc.tag {
			t.Errorf("splitting %q: got %q and %q, want %q and %q", tc.in, path, tag, tc.path, tc.tag)
		}
	}
}
