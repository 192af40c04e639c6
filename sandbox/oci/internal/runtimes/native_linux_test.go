package runtimes

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox"
)

// TestMountOf: what a bundle says means the same to package native.
func TestMountOf(t *testing.T) {
	t.Parallel()
	b := spec{Bundle: &Bundle{Guest: "/bin/guest", Mounts: []sandbox.Mount{{Source: "/a", Target: "/b", ReadOnly: true}}}}
	for _, m := range b.specMounts() {
		got := mountOf(m.Destination, m.Type, m.Source, m.Options)
		for _, o := range m.Options {
			if _, flag := mountFlags[o]; flag == strings.Contains(","+got.Data+",", ","+o+",") {
				t.Errorf("%s: option %q is lost, or there twice: %+v", m.Destination, o, got)
			}
		}
		if (got.Type == "") != (m.Type == "bind") {
			t.Errorf("%s: %+v", m.Destination, got)
		}
	}
	if m := mountOf("/b", "bind", "/a", []string{"rbind", "rprivate", "ro"}); m.Flags != unix.MS_REC|unix.MS_RDONLY || m.Data != "" {
		t.Errorf("%+v", m)
	}
	for _, name := range (&spec{cgroupsPath: "/x", Bundle: &Bundle{}}).capabilities() {
		if _, ok := capabilityNumbers[name]; !ok {
			t.Errorf("capability %s has no number", name)
		}
	}
}
