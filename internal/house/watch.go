package house

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Watch makes the result of a test depend on all Go files below root. Go reuses a
// result while what the test itself looked at is the same, and does not see what
// the commands look at that a test runs.
func Watch(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("looking at the sources: %w", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
