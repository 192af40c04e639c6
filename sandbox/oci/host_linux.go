package oci

import (
	"context"
	"math"
	"os"
	"path/filepath"

	"github.com/proctor-run/proctor/internal/machine"
	"github.com/proctor-run/proctor/sandbox"
)

var _ sandbox.HostTeller = (*Backend)(nil)

// Host is what this machine has, within the limits of the control group that the groups
// of sandboxes are made in: a container's, where this is one.
func (b *Backend) Host(context.Context) (sandbox.Host, error) {
	h := sandbox.Host{CPUs: machine.CPUs()}
	cpus, memory := b.groups.Bounds()
	if cpus > 0 {
		h.CPUs = min(h.CPUs, max(int(math.Round(cpus)), 1))
	}
	if kib := machine.MemoryKiB(); kib < math.MaxInt64 {
		h.MemoryMiB = kib >> 10
	}
	if memory > 0 && (h.MemoryMiB == 0 || memory>>20 < h.MemoryMiB) {
		h.MemoryMiB = max(memory>>20, 1)
	}
	if free, known := machine.FreeBytes(existing(b.opts.StateDir)); known {
		h.DiskMiB = max(free>>20, 1)
	}
	return h, nil
}

// existing is a directory, or the nearest above it that is there already.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}
