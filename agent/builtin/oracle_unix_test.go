//go:build unix

package builtin

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/internal/planted"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// TestOracleWithoutFile: what is no file is no solution, and is named.
func TestOracleWithoutFile(t *testing.T) {
	t.Parallel()
	for _, kind := range planted.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			sb, err := fake.New(fake.Config{Dir: t.TempDir()}).Create(t.Context(), sandbox.Spec{Name: "s"})
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			script := filepath.Join(dir, "solve.sh")
			kind.Put(t, script)
			o := &oracle{Solution: func(string) agent.Solution { return agent.Solution{Dir: dir, Script: "solve.sh"} }}
			if _, err := o.Run(t.Context(), agent.Env{Sandbox: sb, LogDir: t.TempDir()}, agent.Task{}); err == nil || !strings.Contains(err.Error(), script) {
				t.Errorf("got %v", err)
			}
		})
	}
}
