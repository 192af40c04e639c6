package redact_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/redact"
)

func TestTree(t *testing.T) {
	t.Parallel()
	const value = "sk-verysecret"
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	long := strings.Repeat("x", 256<<10-5) + value + strings.Repeat("y", 300<<10)
	write := map[string]string{
		outside: value, filepath.Join(dir, "plain"): "nothing", filepath.Join(dir, "skipped"): value,
		filepath.Join(dir, "a", "b", "found"): "<" + value + ">", filepath.Join(dir, "a", "long"): long,
		filepath.Join(dir, "binary"): "\x00" + value + "\x01", filepath.Join(dir, "d-"+value, "n-"+value): "x",
		filepath.Join(dir, "d-[REDACTED:KEY]", "there"): "x",
	}
	for path, text := range write {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o640)); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"l1": outside, "l2": "/x/" + value} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	set := redact.New([]redact.Secret{{Name: "KEY", Value: value}})
	clean(t, dir, set, nil)
	for path, want := range map[string]string{
		outside: value, dir + "/plain": "nothing", dir + "/skipped": value, dir + "/a/b/found": "<[REDACTED:KEY]>",
		dir + "/a/long": strings.Replace(long, value, "[REDACTED:KEY]", 1), dir + "/binary": "\x00" + strings.Repeat("*", len(value)) + "\x01",
		dir + "/d-[REDACTED:KEY]-2/n-[REDACTED:KEY]": "x", dir + "/d-[REDACTED:KEY]/there": "x", dir + "/l1": value,
	} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %.40q, %v; want %.40q", path, got, err, want)
		}
	}
	if _, err := os.Lstat(dir + "/l2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link to a secret is still there: %v", err)
	}
	if info, err := os.Stat(dir + "/a/b/found"); err != nil || info.Mode().Perm() != 0o640 && runtime.GOOS != "windows" {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// A tree that is deeper than files may be open.
func TestDeepTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	deep := filepath.Join(dir, filepath.FromSlash(strings.Repeat("d/", 150)))
	file := filepath.Join(deep, "f-sk-verysecret")
	if err := errors.Join(os.MkdirAll(deep, 0o755), os.WriteFile(file, []byte("sk-verysecret"), 0o600)); err != nil {
		t.Fatal(err)
	}
	clean(t, dir, redact.New([]redact.Secret{{Name: "KEY", Value: "sk-verysecret"}}), nil)
	if got, err := os.ReadFile(filepath.Join(deep, "f-[REDACTED:KEY]")); err != nil || string(got) != "[REDACTED:KEY]" {
		t.Errorf("got %q, %v", got, err)
	}
}

func clean(t *testing.T, dir string, set *redact.Set, stop chan struct{}) {
	t.Helper()
	if err := redact.Tree(dir, set, stop, "skipped"); err != nil {
		t.Fatal(err)
	}
}

func TestTreeStops(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("sk-verysecret"), 0o600); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	close(stop)
	set := redact.New([]redact.Secret{{Name: "KEY", Value: "sk-verysecret"}})
	if err := redact.Tree(dir, set, stop); err == nil || !strings.Contains(err.Error(), "given up") {
		t.Errorf("got %v", err)
	}
}

// TestTreeWithoutEnd: a tree that is nested so deeply that nobody reads it is given up
// below some depth, which is told, and does not take the longer the deeper it is.
func TestTreeWithoutEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	for range 600 {
		if err != nil {
			t.Fatal(err)
		}
		below := root
		if err = below.Mkdir("d", 0o755); err == nil {
			root, err = below.OpenRoot("d")
		}
		err = errors.Join(err, below.Close())
	}
	if err := errors.Join(err, root.Close()); err != nil {
		t.Fatal(err)
	}
	set := redact.New([]redact.Secret{{Name: "KEY", Value: "sk-verysecret"}})
	if err := redact.Tree(dir, set, nil); err == nil || strings.Count(err.Error(), "nested too deeply") != 1 {
		t.Errorf("got %v", err)
	}
}
