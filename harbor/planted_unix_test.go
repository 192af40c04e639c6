//go:build unix

package harbor_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/planted"
)

// TestPlanted replaces each file of a task by what is none: nothing that reads tasks
// waits for it, and what needs the file names it.
func TestPlanted(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"task.toml": "", "instruction.md": "Do it.\n", "tests/test.sh": "true\n", "solution/solve.sh": "true\n",
		"environment/Dockerfile": "FROM scratch\n", "environment/data": "x", ".gitignore": "*.pyc\n",
	}
	special := []planted.Kind{planted.Pipe, planted.Socket, planted.Endless, planted.Directory}
	for _, c := range []struct {
		name string
		read func(dir string) error
		// fails tells where an error must come, and name the file.
		fails func(file string, kind planted.Kind) bool
	}{
		{
			"Load", func(dir string) error { _, err := harbor.Load(dir, harbor.LoadOptions{}); return err },
			func(file string, _ planted.Kind) bool { return file == "task.toml" || file == "instruction.md" },
		},
		{
			"Validate", func(dir string) error {
				var failed []string
				for _, p := range harbor.Validate(dir) {
					if p.Severity == harbor.SeverityError {
						failed = append(failed, fmt.Sprintf("%s: %s", filepath.Join(dir, p.File), p.Message))
					}
				}
				if len(failed) == 0 {
					return nil
				}
				return fmt.Errorf("%s", strings.Join(failed, "\n"))
			},
			func(file string, kind planted.Kind) bool {
				return file == "task.toml" || file == "instruction.md" || file == "tests/test.sh" && slices.Contains(special, kind)
			},
		},
		{
			// What is no file does not count (section 2.1).
			"Checksum", func(dir string) error { _, err := harbor.Checksum(dir); return err },
			func(_ string, kind planted.Kind) bool { return kind == planted.Sparse },
		},
		{
			"PackageHash", func(dir string) error { _, _, err := harbor.PackageHash(dir); return err },
			func(file string, kind planted.Kind) bool { return kind == planted.Sparse || file == ".gitignore" },
		},
		{
			"Discover", func(dir string) error { _, err := harbor.Discover(filepath.Dir(dir), false); return err },
			func(string, planted.Kind) bool { return false },
		},
	} {
		for file := range files {
			for _, kind := range planted.Kinds() {
				t.Run(c.name+"/"+file+"/"+string(kind), func(t *testing.T) {
					t.Parallel()
					dir := filepath.Join(realTempDir(t), "t")
					planted.Files(t, dir, files)
					path := filepath.Join(dir, filepath.FromSlash(file))
					kind.Put(t, path)
					err := c.read(dir)
					if want := c.fails(file, kind); (err != nil) != want || want && !strings.Contains(err.Error(), path) {
						t.Errorf("error %v; want one that names %s: %v", err, path, want)
					}
				})
			}
		}
	}
}
