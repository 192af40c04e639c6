//go:build unix

package traces

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/planted"
)

// TestFilesThatAreNone: a trajectory in a directory is read where it is a file of it,
// and one that the user named where it can end.
func TestFilesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, kind := range planted.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "agent", "trajectory.json")
			kind.Put(t, file)
			found, err := Files(dir)
			if err != nil {
				t.Fatal(err)
			}
			if kind == planted.Directory {
				if len(found) > 0 {
					t.Errorf("found %v", found)
				}
				return
			}
			if _, err := found[0].Read(); err == nil || !strings.Contains(err.Error(), file) {
				t.Errorf("Read: %v", err)
			}
			if kind == planted.Pipe {
				return // that is for its writer
			}
			if _, err := (File{name: file}).Read(); err == nil || !strings.Contains(err.Error(), file) {
				t.Errorf("Read of a named one: %v", err)
			}
		})
	}
}
