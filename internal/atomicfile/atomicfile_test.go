package atomicfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/internal/atomicfile"
)

func TestWriteReplaces(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(string, []byte, os.FileMode) error{
		"synced": atomicfile.Write, "unsynced": atomicfile.WriteUnsynced,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "result.json")
			for _, text := range []string{"first", "second, longer", ""} {
				if err := write(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				got, err := os.ReadFile(path)
				if err != nil || string(got) != text {
					t.Errorf("after writing %q: %q, %v", text, got, err)
				}
			}
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != 0o644 {
				t.Errorf("mode %v, %v; want 0644", info.Mode(), err)
			}
			assertOnly(t, dir, "result.json")
		})
	}
}

func TestFailedWriteLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(target, "child"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(target, []byte("x"), 0o644); err == nil {
		t.Fatal("a directory was replaced by a file")
	}
	assertOnly(t, dir, "taken")
	if err := atomicfile.Write(filepath.Join(dir, "missing", "file"), []byte("x"), 0o644); err == nil {
		t.Fatal("writing into a missing directory gave no error")
	}
}

func assertOnly(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("directory holds %v, want only %q", entries, name)
	}
}

func TestWriteInFollowsNoPlantedLink(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(outside, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "manifest.json")); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.WriteIn(dir, "manifest.json", []byte("[]"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(outside); err != nil || string(got) != "precious" {
		t.Errorf("the link's target now holds %q, %v", got, err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "manifest.json")); err != nil || string(got) != "[]" {
		t.Errorf("the file holds %q, %v", got, err)
	}
}

func TestWriteFromReplacesWhatIsWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "lock.json")
	failed := errors.New("no more")
	for _, tt := range []struct {
		err  error
		want string
	}{{nil, "one, two"}, {failed, "one, two"}} {
		err := atomicfile.WriteFrom(path, 0o644, func(w io.Writer) error {
			for _, part := range []string{"one, ", "two"} {
				if _, err := io.WriteString(w, part); err != nil {
					return err
				}
			}
			if tt.err == nil {
				return nil
			}
			_, err := io.WriteString(w, ", three")
			return errors.Join(err, tt.err)
		})
		if !errors.Is(err, tt.err) {
			t.Errorf("error %v, want %v", err, tt.err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != tt.want {
			t.Errorf("the file holds %q, %v; want %q", got, err, tt.want)
		}
		assertOnly(t, dir, "lock.json")
	}
}
