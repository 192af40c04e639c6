package harbor_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// content is a file in a vector: text, or {"hex": …}, {"base64": …}, or null
// for a directory.
type content struct {
	data []byte
	dir  bool
}

func (c *content) UnmarshalJSON(raw []byte) error {
	var text *string
	if err := json.Unmarshal(raw, &text); err == nil {
		c.dir = text == nil
		if text != nil {
			c.data = []byte(*text)
		}
		return nil
	}
	var coded struct{ Hex, Base64 string }
	if err := json.Unmarshal(raw, &coded); err != nil {
		return err
	}
	var err error
	if c.data, err = hex.DecodeString(coded.Hex); err == nil && coded.Base64 != "" {
		c.data, err = base64.StdEncoding.DecodeString(coded.Base64)
	}
	return err
}

// plant writes a vector's files below dir.
func plant(t testing.TB, dir string, files map[string]content) {
	t.Helper()
	for name, c := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if c.dir {
			mkdir(t, path)
			continue
		}
		write(t, path, c.data, 0o644)
	}
}

func mkdir(t testing.TB, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, path string, data []byte, mode os.FileMode) {
	t.Helper()
	mkdir(t, filepath.Dir(path))
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
}

// realTempDir is a temporary directory named by its real path.
func realTempDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// treeEntry is one entry of a tree in the checksum vectors.
type treeEntry struct {
	Path, Type, Content, Target, Mode string
}

func grow(t testing.TB, dir string, entries []treeEntry) {
	t.Helper()
	mkdir(t, dir)
	for _, e := range entries {
		path := filepath.Join(dir, filepath.FromSlash(e.Path))
		switch e.Type {
		case "dir":
			mkdir(t, path)
		case "symlink":
			mkdir(t, filepath.Dir(path))
			if err := os.Symlink(e.Target, path); err != nil {
				t.Fatal(err)
			}
		case "file":
			mode := os.FileMode(0o644)
			if e.Mode != "" {
				n, err := strconv.ParseUint(e.Mode, 8, 32)
				if err != nil {
					t.Fatal(err)
				}
				mode = os.FileMode(n)
			}
			write(t, path, []byte(e.Content), mode)
		default:
			t.Fatalf("unknown type of entry %q", e.Type)
		}
	}
}
