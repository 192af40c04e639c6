//go:build unix

package infra

import (
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/internal/planted"
)

// TestProvisionedInNoFile: what cannot be read is absent, and not waited for.
func TestProvisionedInNoFile(t *testing.T) {
	t.Parallel()
	for _, kind := range planted.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := newProvisionStore(t.TempDir())
			kind.Put(t, filepath.Join(s.dir, s.fileName("k")))
			if s.has("k") {
				t.Error("something is known")
			}
		})
	}
}
