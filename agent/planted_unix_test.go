//go:build unix

package agent_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/internal/planted"
)

// TestDigestOfNoFile: what is no file is no content of a skill, and one that nobody
// can read to its end is an error.
func TestDigestOfNoFile(t *testing.T) {
	t.Parallel()
	for _, kind := range planted.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			planted.Files(t, dir, map[string]string{"SKILL.md": "x"})
			file := filepath.Join(dir, "f")
			kind.Put(t, file)
			_, err := agent.Skill{Name: "s", Dir: dir}.Digest()
			if want := kind == planted.Sparse; (err != nil) != want || want && !strings.Contains(err.Error(), file) {
				t.Errorf("got %v", err)
			}
		})
	}
}
