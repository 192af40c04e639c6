//go:build unix

package buildcontext

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/planted"
)

// TestPlanted replaces each file of a context by what is none: nothing waits for it or
// reads it whole.
func TestPlanted(t *testing.T) {
	t.Parallel()
	files := map[string]string{Dockerfile: "FROM scratch\n", ignoreName: "*.pyc\n", "data": "x"}
	hash := func(dir string) error {
		c, err := Read(dir)
		if err == nil {
			_, err = c.Hash("linux")
		}
		return err
	}
	pack := func(dir string) error {
		c, err := Read(dir)
		if err == nil {
			err = c.Tar(io.Discard)
		}
		return err
	}
	dockerfile := func(dir string) error { _, err := ReadDockerfile(dir); return err }
	for name, read := range map[string]func(string) error{"hash": hash, "pack": pack, "Dockerfile": dockerfile} {
		for file := range files {
			for _, kind := range planted.Kinds() {
				t.Run(name+"/"+file+"/"+string(kind), func(t *testing.T) {
					t.Parallel()
					dir := t.TempDir()
					planted.Files(t, dir, files)
					kind.Put(t, filepath.Join(dir, file))
					err := read(dir)
					read := name == "Dockerfile" && file == Dockerfile || name != "Dockerfile" && file == ignoreName
					want := read || name != "Dockerfile" && (kind == planted.Sparse || file == Dockerfile && kind == planted.Endless)
					if (err != nil) != want || want && !strings.Contains(err.Error(), file) {
						t.Errorf("error %v; want one that names %s: %v", err, file, want)
					}
				})
			}
		}
	}
}
