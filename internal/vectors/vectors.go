// Package vectors finds the recorded behaviour that tests compare with.
//
// Vectors lie in testdata/vectors/<topic>/ of the package under test. When the
// environment variable PROCTOR_VECTORS names a directory, every test reads
// <that directory>/<topic>/ instead, and skips where a file is missing there.
package vectors

import (
	"os"
	"path/filepath"
	"sort"
	"testing"
)

// File returns the content of one vector file, for example
// "rewards/arith.jsonl".
func File(t testing.TB, name string) []byte {
	t.Helper()
	root, overridden := root()
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		missing(t, overridden, name, err)
	}
	return data
}

// Dir returns the base names of the files of one vector directory that match
// the pattern ("*.json"), sorted. Read each with File.
func Dir(t testing.TB, dir, pattern string) []string {
	t.Helper()
	root, overridden := root()
	paths, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), pattern))
	if err != nil {
		t.Fatalf("listing vectors %s/%s: %v", dir, pattern, err)
	}
	if len(paths) == 0 {
		missing(t, overridden, dir+"/"+pattern, os.ErrNotExist)
	}
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = filepath.Base(p)
	}
	sort.Strings(names)
	return names
}

func root() (dir string, overridden bool) {
	if dir := os.Getenv("PROCTOR_VECTORS"); dir != "" {
		return dir, true
	}
	return filepath.Join("testdata", "vectors"), false
}

func missing(t testing.TB, overridden bool, name string, err error) {
	t.Helper()
	if overridden {
		t.Skipf("vectors %s are not in PROCTOR_VECTORS: %v", name, err)
	}
	t.Fatalf("reading vectors %s: %v", name, err)
}
