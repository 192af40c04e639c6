package oci

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/sandboxtest"
)

// cycles is how many sandboxes are made to see whether something is left.
func cycles() int {
	if need.Required("patience") {
		return 1000
	}
	return 12
}

func TestCycles(t *testing.T) {
	t.Parallel()
	eachLimiting(t, func(t *testing.T, _ string, b *Backend) {
		spec := sandbox.Spec{Resources: sandbox.Resources{CPUs: 1, MemoryMB: 256, StorageMB: 256}}
		ids := sandboxtest.Cycles(t, b, spec, cycles())
		assertNothingLeft(t, b.opts.StateDir)
		processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if dirs := b.groups.Dirs(id); len(dirs) > 0 {
				t.Errorf("control groups are left: %q", dirs)
			}
		}
		for _, p := range processes {
			if line, _ := os.ReadFile(p); strings.Contains(string(line), b.opts.StateDir) {
				t.Errorf("a process is left: %q", line)
			}
		}
		for _, name := range openFiles(t) {
			if strings.Contains(name, b.opts.StateDir) {
				t.Errorf("a file is left open: %q", name)
			}
		}
	})
}

// openFiles names what this process has open.
func openFiles(t testing.TB) (names []string) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		if name, err := os.Readlink("/proc/self/fd/" + d.Name()); err == nil { // else it was closed meanwhile
			names = append(names, name)
		}
	}
	return names
}
