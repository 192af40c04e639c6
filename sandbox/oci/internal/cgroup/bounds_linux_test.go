package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

// TestBounds: the smallest limit of a group and those above it counts.
func TestBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		files  map[string]string
		group  string
		cpus   float64
		memory int64
	}{
		{"nothing", map[string]string{}, "/a", 0, 0},
		{"version 1", map[string]string{
			"cpu/cpu.cfs_quota_us": "150000\n", "cpu/cpu.cfs_period_us": "100000\n",
			"memory/memory.limit_in_bytes": "536870912\n", "memory/a/memory.limit_in_bytes": "9223372036854771712\n",
		}, "/a", 1.5, 512 << 20},
		{"version 1 without limits", map[string]string{
			"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n",
			"memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, "", 0, 0},
		{"the nearest", map[string]string{
			"memory/a/memory.limit_in_bytes": "1048576", "memory/memory.limit_in_bytes": "2097152",
			"memory/a/b/memory.limit_in_bytes": "4194304", "memory/c/memory.limit_in_bytes": "1",
		}, "/a/b", 0, 1 << 20},
		{"words", map[string]string{"cpu/cpu.cfs_quota_us": "many", "memory/memory.limit_in_bytes": "max"}, "/", 0, 0},
	} {
		root := t.TempDir()
		for name, text := range c.files {
			file := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		cpus, memory := bounds(root, func(string) string { return c.group })
		if cpus != c.cpus || memory != c.memory {
			t.Errorf("%s: %g processors, %d bytes", c.name, cpus, memory)
		}
	}
}

// TestProcessorsOf: version 2 has both numbers in one file.
func TestProcessorsOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{"250000 100000\n": 2.5, "max 100000\n": 0, "1": 0, "": 0} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "cpu.max"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := processorsOf(dir); got != want {
			t.Errorf("%q: %g", text, got)
		}
	}
}
