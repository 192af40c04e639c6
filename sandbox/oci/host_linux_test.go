package oci

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/internal/machine"
)

// TestHost: there is no more than this machine has, and the disk is the one of the state
// directory, which need not be there yet.
func TestHost(t *testing.T) {
	t.Parallel()
	above := t.TempDir()
	b := &Backend{opts: Options{StateDir: filepath.Join(above, "not", "yet")}}
	got, err := b.Host(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	free, _ := machine.FreeBytes(above)
	if got.CPUs < 1 || got.CPUs > machine.CPUs() || got.MemoryMiB < 1 || got.MemoryMiB > machine.MemoryKiB()>>10 {
		t.Errorf("got %+v", got)
	}
	if got.DiskMiB < 1 || free>>20 > 2*got.DiskMiB || got.DiskMiB > 2*(free>>20) {
		t.Errorf("%d MiB of disk, and %d bytes are free", got.DiskMiB, free)
	}
	if _, err := os.Stat(b.opts.StateDir); err == nil {
		t.Error("the state directory was made")
	}
}
