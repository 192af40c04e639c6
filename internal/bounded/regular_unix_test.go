//go:build unix

package bounded_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/planted"
)

// TestReadRegular: links lead anywhere, and to files alone.
func TestReadRegular(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	there, file := filepath.Join(t.TempDir(), "there"), filepath.Join(dir, "f")
	planted.Files(t, filepath.Dir(there), map[string]string{"there": "x"})
	if err := os.Symlink(there, file); err != nil {
		t.Fatal(err)
	}
	if data, err := bounded.ReadRegular(file, 1); err != nil || string(data) != "x" {
		t.Errorf("a link out: %q, %v", data, err)
	}
	for _, kind := range planted.Kinds() {
		kind.Put(t, file)
		want := bounded.ErrNotRegular
		if kind == planted.Sparse {
			want = bounded.ErrTooLarge
		}
		if _, err := bounded.ReadRegular(file, bounded.MaxContent); !errors.Is(err, want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestReadFileOfTheUser: a pipe is waited for until the context ends, what has no end
// is read no further than anybody types.
func TestReadFileOfTheUser(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "f")
	planted.Pipe.Put(t, file)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := bounded.ReadFileContext(ctx, file, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("a pipe: %v", err)
	}
	w, err := os.OpenFile(file, os.O_RDWR, 0) // lets the reader go
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	for _, kind := range []planted.Kind{planted.Endless, planted.Sparse} {
		file := filepath.Join(t.TempDir(), "f")
		kind.Put(t, file)
		if _, err := bounded.ReadFileContext(t.Context(), file, bounded.MaxContent); !errors.Is(err, bounded.ErrTooLarge) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
