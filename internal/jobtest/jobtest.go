// Package jobtest helps the tests of packages that read and write job
// directories.
package jobtest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/value"
)

// Fixtures are the job directories that Harbor itself wrote.
func Fixtures() []string {
	return []string{Fixture("mixed-oracle"), Fixture("mixed-nop"), Fixture("multi-oracle")}
}

// Fixture is one of them, seen from the package under test.
func Fixture(name string) string {
	up := ""
	for range 4 {
		if dir := filepath.Join(up, "jobdir", "testdata", "jobs", name); isDir(dir) {
			return dir
		}
		up = filepath.Join(up, "..")
	}
	return name // which tells what is missing
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Copy copies what matters of a job directory; its last part stays.
func Copy(t testing.TB, src string) string {
	t.Helper()
	dst := filepath.Join(t.TempDir(), filepath.Base(src))
	for _, pattern := range []string{"*.json", "*/*.json"} {
		for _, path := range Glob(t, filepath.Join(src, pattern)) {
			rel, err := filepath.Rel(src, path)
			if err != nil {
				t.Fatal(err)
			}
			Write(t, filepath.Join(dst, rel), []byte(Read(t, path)))
		}
	}
	return dst
}

// Glob lists the files that match, of which there must be some.
func Glob(t testing.TB, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
	}
	return paths
}

// Read returns the content of a file without its last line end.
func Read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSuffix(data, []byte("\n")))
}

// Write writes a file and makes its directories.
func Write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// Compact is a value as compact JSON.
func Compact(v value.Value) string { return string(value.AppendPydantic(nil, v, 0)) }

// EqualText ends the test where two texts begin to differ.
func EqualText(t testing.TB, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	from := max(i-200, 0)
	t.Fatalf("texts differ at byte %d:\n got …%s\nwant …%s", i, got[from:min(i+200, len(got))], want[from:min(i+200, len(want))])
}

// Decode reads a JSON object.
func Decode(t testing.TB, data []byte) *value.Object {
	t.Helper()
	v, err := value.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return v.(*value.Object)
}

// Member returns a member of a type.
func Member[T value.Value](t testing.TB, obj *value.Object, key string) T {
	t.Helper()
	v, _ := obj.Get(key)
	out, ok := v.(T)
	if !ok {
		t.Fatalf("%q is %s, want a %T", key, value.Repr(v), out)
	}
	return out
}
