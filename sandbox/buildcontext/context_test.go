package buildcontext

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestIgnore(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		patterns  string
		name      string
		left, out []string
	}{
		{patterns: "", left: []string{"a", "a/b"}},
		{patterns: "# a\n\n  b  \n", left: []string{"a", "c/b"}, out: []string{"b", "b/c"}},
		{patterns: "*", out: []string{"a", "a/b", ".hidden"}},
		{patterns: "*.go", left: []string{"a/b.go", "a.got"}, out: []string{"b.go", ".go"}},
		{patterns: "**/*.go", left: []string{"a.c"}, out: []string{"a/b.go", "b.go", "x/y/z.go"}},
		{patterns: "*/temp*", left: []string{"temp", "a/b/temp"}, out: []string{"a/temporary", "a/temp/x"}},
		{patterns: "temp?", left: []string{"temp", "temp12"}, out: []string{"tempa", "temp1/x"}},
		{patterns: "/a/", left: []string{"b/a"}, out: []string{"a", "a/b"}},
		{patterns: "a/../b/./c", left: []string{"a"}, out: []string{"b/c"}},
		{patterns: "*.md\n!README.md", left: []string{"README.md"}, out: []string{"x.md"}},
		{patterns: "*.md\n!README*.md\nREADME-secret.md", left: []string{"README.md", "README-x.md"}, out: []string{"README-secret.md"}},
		{patterns: "*.md\nREADME-secret.md\n!README*.md", left: []string{"README-secret.md"}},
		{patterns: "dir\n!dir/keep", left: []string{"dir/keep", "dir/keep/x"}, out: []string{"dir", "dir/other"}},
		{patterns: "[a-c]x\n[^0-9]y", left: []string{"dx", "5y"}, out: []string{"bx", "zy"}},
		{patterns: `a\*b`, left: []string{"axb"}, out: []string{"a*b"}},
		{patterns: "a/**", left: []string{"a", "b/a/c"}, out: []string{"a/b", "a/b/c"}},
		{patterns: "**", out: []string{"a", "a/b"}},
		{patterns: "a.b+c", left: []string{"axb+c", "a.bbc"}, out: []string{"a.b+c"}},
		{patterns: "\xef\xbb\xbfa", out: []string{"a"}},
		{patterns: "a\r\n", out: []string{"a"}},
	} {
		ig, err := ParseIgnore([]byte(tt.patterns))
		if err != nil {
			t.Errorf("%q: %v", tt.patterns, err)
			continue
		}
		for _, name := range tt.left {
			if ig.Excludes(name) {
				t.Errorf("%q leaves out %q", tt.patterns, name)
			}
		}
		for _, name := range tt.out {
			if !ig.Excludes(name) {
				t.Errorf("%q lets in %q", tt.patterns, name)
			}
		}
	}
	for _, bad := range []string{"[", "a\n!", `a[b`, `[]`} {
		if _, err := ParseIgnore([]byte(bad)); err == nil || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%q: got error %v, want one with the line", bad, err)
		}
	}
}

func FuzzIgnore(f *testing.F) {
	f.Add("**/*.go\n!a[b-c]d\\*", "a/b.go")
	f.Fuzz(func(t *testing.T, text, name string) {
		ig, err := ParseIgnore([]byte(text))
		if err == nil && filepath.IsLocal(name) {
			ig.Excludes(filepath.ToSlash(filepath.Clean(name)))
		}
	})
}

func TestContext(t *testing.T) {
	t.Parallel()
	fill := func(t *testing.T) string {
		dir := t.TempDir()
		for name, text := range map[string]string{"Dockerfile": "FROM scratch", ".dockerignore": "out\nDockerfile\n", "in/a": "a", "in/b": "b", "out/c": "c"} {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	hash := func(t *testing.T, dir string) string {
		c, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		sum, err := c.Hash("linux")
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	dir := fill(t)
	want := hash(t, dir)
	c, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if names := []string{".dockerignore", "Dockerfile", "in", "in/a", "in/b"}; !slices.Equal(c.Names(), names) {
		t.Errorf("got %q, want %q", c.Names(), names)
	}
	var archive bytes.Buffer
	if err := c.Tar(&archive); err != nil {
		t.Fatal(err)
	}
	entries := 0
	for r := tar.NewReader(&archive); ; entries++ {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 {
			t.Errorf("%s belongs to %d:%d", h.Name, h.Uid, h.Gid)
		}
	}
	if entries != 5 {
		t.Errorf("%d entries", entries)
	}
	for name, change := range map[string]func(dir string) error{
		"other times":          func(d string) error { return os.Chtimes(filepath.Join(d, "in/a"), time.Unix(1, 0), time.Unix(1, 0)) },
		"what is ignored":      func(d string) error { return os.WriteFile(filepath.Join(d, "out/d"), nil, 0o644) },
		"! other bytes":        func(d string) error { return os.WriteFile(filepath.Join(d, "in/a"), []byte("x"), 0o644) },
		"! another name":       func(d string) error { return os.Rename(filepath.Join(d, "in/a"), filepath.Join(d, "in/x")) },
		"! an empty directory": func(d string) error { return os.Mkdir(filepath.Join(d, "empty"), 0o755) },
		"! a link":             func(d string) error { return os.Symlink("/etc/passwd", filepath.Join(d, "in/link")) },
		"! bytes between files": func(d string) error {
			return errors.Join(os.WriteFile(filepath.Join(d, "in/a"), []byte("ab"), 0o644), os.WriteFile(filepath.Join(d, "in/b"), nil, 0o644))
		},
	} {
		dir := fill(t)
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		if changed := hash(t, dir) != want; changed != strings.HasPrefix(name, "!") {
			t.Errorf("%s: the hash changes: %v", name, changed)
		}
	}
	if got, _ := c.Hash("windows"); got == want {
		t.Error("the platform does not count")
	}
}

// A file that grows or goes while it is sent must not end in a broken archive
// that is taken for a whole one.
func TestContextThatChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"Dockerfile", "a"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if err := c.Tar(io.Discard); err == nil || !strings.Contains(err.Error(), "a") {
		t.Errorf("got error %v, want one that names the file", err)
	}
}

func TestReadDockerfile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := ReadDockerfile(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without one: %v", err)
	}
	path := filepath.Join(dir, Dockerfile)
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadDockerfile(dir); err == nil || !strings.Contains(err.Error(), "expected a regular file") {
		t.Errorf("a directory: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("#"), maxDockerfile+1), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadDockerfile(dir); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("one that is too long: %v", err)
	}
}
