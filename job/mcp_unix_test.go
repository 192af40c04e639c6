//go:build unix

package job

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/planted"
)

// TestMCPServersInNoFile: only a pipe is waited for, which is for its writer.
func TestMCPServersInNoFile(t *testing.T) {
	t.Parallel()
	for _, kind := range planted.Kinds() {
		if kind == planted.Pipe {
			continue
		}
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "m.json")
			kind.Put(t, file)
			if _, err := ReadMCPServers(file); err == nil || !strings.Contains(err.Error(), file) {
				t.Errorf("got %v", err)
			}
		})
	}
}
