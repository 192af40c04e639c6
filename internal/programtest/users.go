package programtest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// ForAll copies a program to where every user can execute it, until the test is over.
func ForAll(t testing.TB, source string) (path string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "program")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "program.test")
	Copy(t, source, path)
	return path
}

// Group makes a control group below another one that belongs to a user, as cgroups(7)
// says under "Delegation". When the test is over it has to be empty. It returns "" where
// no group can be made.
func Group(t testing.TB, parent string, uid int) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "proctor-test-")
	if err != nil {
		return ""
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	given, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "cgroup.controllers")); err == nil { // version 2 has limits that stay the giver's
		given = []string{filepath.Join(dir, "cgroup.procs"), filepath.Join(dir, "cgroup.threads"), filepath.Join(dir, "cgroup.subtree_control")}
	}
	for _, path := range append(given, dir) {
		if err := os.Chown(path, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
