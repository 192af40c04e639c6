//go:build unix

package feed

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/proctor-run/proctor/internal/bounded"
)

// TestPlantedLogs: what a sandbox puts in the place of a log is not read, and a log that
// comes after it is.
func TestPlantedLogs(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		plant func(path string) error
		want  error
	}{
		{"pipe", func(path string) error { return syscall.Mkfifo(path, 0o600) }, bounded.ErrNotRegular},
		{"link out", func(path string) error { return os.Symlink(outside, path) }, bounded.ErrLeadsOut},
		{"device", func(path string) error { return os.Symlink(os.DevNull, path) }, bounded.ErrLeadsOut},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := follow(t)
			if err := c.plant(l.path); err != nil {
				t.Fatal(err)
			}
			l.look()
			if rest, err := l.end(); len(rest) > 0 || !errors.Is(err, c.want) {
				t.Errorf("got %q and %v, want %v", rest, err, c.want)
			}

			l = follow(t)
			if err := c.plant(l.path); err != nil {
				t.Fatal(err)
			}
			l.look()
			if err := os.Remove(l.path); err != nil {
				t.Fatal(err)
			}
			l.write("a\n")
			if rest, err := l.end(); strings.Join(rest, "|") != "a\n" || err != nil {
				t.Errorf("after it: got %q and %v", rest, err)
			}
		})
	}
}
