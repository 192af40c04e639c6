package bounded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret")
	for path, content := range map[string]string{outside: "secret", filepath.Join(dir, "file"): "content"} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadIn(dir, "file", 7); err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, c := range []struct {
		name  string
		limit int64
		want  string
	}{
		{"file", 6, "larger than 6 bytes"}, {"out", 100, "escapes"}, {"dir", 100, "no regular file"}, {"none", 100, "no such file"},
	} {
		if got, err := ReadIn(dir, c.name, c.limit); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}
