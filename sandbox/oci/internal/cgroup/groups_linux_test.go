package cgroup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
)

// TestUnifiedGroups: with version 2 the limits stand in the files of one group,
// whose parents pass the controllers on.
func TestUnifiedGroups(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	files := map[string]string{}
	for _, dir := range []string{"", parentGroup, parentGroup + "/p1"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"cgroup.subtree_control", parentGroup + "/cgroup.subtree_control"} {
		files[name] = ""
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := &Place{dir: root, have: []string{Processors, Memory, Processes}}
	limits, err := p.unifiedLimits(Wanted{Resources: sandbox.Resources{CPUs: 1.5, MemoryMB: 64, PIDs: 100}})
	if err != nil {
		t.Fatal(err)
	}
	want := [][2]string{{"pids.max", "100"}, {"memory.max", "67108864"}, {"cpu.max", "150000 100000"}}
	if len(limits) != len(want) || limits[0] != want[0] || limits[1] != want[1] || limits[2] != want[2] {
		t.Errorf("limits %q, want %q", limits, want)
	}
}
