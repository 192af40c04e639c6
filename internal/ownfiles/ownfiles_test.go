package ownfiles_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/internal/ownfiles"
)

func TestCubes(t *testing.T) {
	t.Parallel()
	home, python := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(python, ".cube"), 0o755); err != nil {
		t.Fatal(err)
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		env  map[string]string
		want string
	}{
		{"named", map[string]string{"CUBE_CACHE_DIR": "/data/cubes", "HOME": python, "PROCTOR_CACHE_DIR": "/own"}, "/data/cubes"},
		{"named and empty", map[string]string{"CUBE_CACHE_DIR": "", "HOME": python}, wd},
		{"of Python", map[string]string{"HOME": python, "PROCTOR_CACHE_DIR": "/own"}, filepath.Join(python, ".cube")},
		{"proctor's", map[string]string{"HOME": home, "PROCTOR_CACHE_DIR": "/own", "XDG_CACHE_HOME": "/xdg"}, "/own/cubes"},
		{"of XDG", map[string]string{"HOME": home, "XDG_CACHE_HOME": "/xdg"}, "/xdg/proctor/cubes"},
	} {
		got, err := ownfiles.Cubes(func(name string) (string, bool) { v, ok := c.env[name]; return v, ok })
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}
