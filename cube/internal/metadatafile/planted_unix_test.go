//go:build unix

package metadatafile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/cube/internal/metadatafile"
	"github.com/proctor-run/proctor/internal/planted"
)

// TestFindNoFile: what is no file is not waited for.
func TestFindNoFile(t *testing.T) {
	t.Parallel()
	for _, kind := range planted.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			kind.Put(t, filepath.Join(dir, "m.json"))
			if _, _, err := metadatafile.Find(os.DirFS(dir), "m"); err == nil || !strings.Contains(err.Error(), "m.json") {
				t.Errorf("got %v", err)
			}
		})
	}
}
