//go:build unix

package bounded_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/proctor-run/proctor/internal/bounded"
)

// TestAppendInChangesNothingElsewhere plants in the place of a file that is appended to
// what would have the text end up in another file, or nowhere.
func TestAppendInChangesNothingElsewhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		plant func(path, other string) error
		want  error
	}{
		{"nothing", func(string, string) error { return nil }, nil},
		{"a file", func(p, _ string) error { return os.WriteFile(p, []byte("old "), 0o600) }, nil},
		{"a link", func(p, other string) error { return os.Symlink(other, p) }, bounded.ErrNotOwn},
		{"a link to nothing", func(p, other string) error { return os.Symlink(other+".new", p) }, bounded.ErrNotOwn},
		{"a second name", func(p, other string) error { return os.Link(other, p) }, bounded.ErrNotOwn},
		{"a pipe", func(p, _ string) error { return syscall.Mkfifo(p, 0o600) }, bounded.ErrNotRegular},
		{"a directory", func(p, _ string) error { return os.Mkdir(p, 0o700) }, bounded.ErrNotRegular},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			outside := t.TempDir()
			other := filepath.Join(outside, "other")
			if err := os.WriteFile(other, []byte("precious"), 0o600); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := c.plant(filepath.Join(dir, "log"), other); err != nil {
				t.Fatal(err)
			}
			f, err := bounded.AppendIn(dir, "log", 0o644)
			if err == nil {
				_, err = f.WriteString("text")
				err = errors.Join(err, f.Close())
			}
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if got, err := os.ReadFile(other); err != nil || string(got) != "precious" {
				t.Errorf("the other file holds %q, %v", got, err)
			}
			if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
				t.Errorf("outside there are %v, %v", entries, err)
			}
		})
	}
}
