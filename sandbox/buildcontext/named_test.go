package buildcontext

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestNamedDockerfile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"docker/App": "FROM scratch", "docker/App.dockerignore": "*\n!kept\n", ".dockerignore": "kept\n",
		"kept": "k", "other": "o",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c, err := ReadNamed(dir, "docker/App")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{".dockerignore", "docker/App", "kept"}; !slices.Equal(c.Names(), want) {
		t.Errorf("its own ignore file leaves %q, want %q", c.Names(), want)
	}
	if err := os.WriteFile(filepath.Join(dir, "docker/App.dockerignore"), []byte("*\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if c, err = ReadNamed(dir, "docker/App"); err != nil || !slices.Contains(c.Names(), "docker/App") {
		t.Errorf("an ignored Dockerfile: %q, %v", c.Names(), err)
	}
	if text, err := ReadDockerfileNamed(dir, "docker/App"); err != nil || text != "FROM scratch" {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := ReadNamed(dir, "missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without the Dockerfile: got error %v", err)
	}
	if _, err := ReadNamed(dir, "../"+filepath.Base(dir)+"/docker/App"); err == nil {
		t.Error("a name that leads out of the directory: no error")
	}
}

func TestAddedFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hash := func(text string) string {
		t.Helper()
		c, err := ReadNamed(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		c.Add("given", []byte(text))
		sum, err := c.Hash("linux")
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	first, again, other := hash("a"), hash("a"), hash("b")
	if first != again || first == other {
		t.Error("the hash does not go by the added file's content")
	}
	c, err := ReadNamed(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	c.Add("given", []byte("text"))
	var out bytes.Buffer
	if err := c.Tar(&out); err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(&out)
	h, err := r.Next()
	if err != nil || h.Name != "given" {
		t.Fatalf("got %+v, %v", h, err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != "text" {
		t.Errorf("got %q, %v", text, err)
	}
}
