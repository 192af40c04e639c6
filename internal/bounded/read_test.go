package bounded_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/bounded"
)

func TestReadRefusesMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(limit int64) ([]byte, error){
		"Read":     func(limit int64) ([]byte, error) { return bounded.Read(strings.NewReader("12345"), limit) },
		"ReadFile": func(limit int64) ([]byte, error) { return bounded.ReadFile(path, limit) },
		"ReadIn":   func(limit int64) ([]byte, error) { return bounded.ReadIn(dir, "f", limit) },
	} {
		if data, err := read(5); err != nil || string(data) != "12345" {
			t.Errorf("%s: %q, %v", name, data, err)
		}
		if _, err := read(4); err == nil || !strings.Contains(err.Error(), "more than 4 bytes") {
			t.Errorf("%s of too much: %v", name, err)
		}
	}
	if _, err := bounded.ReadFile(filepath.Join(dir, "none"), 5); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
