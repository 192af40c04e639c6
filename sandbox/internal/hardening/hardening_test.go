package hardening

import (
	"slices"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
)

func TestComplete(t *testing.T) {
	t.Parallel()
	if got := Complete(sandbox.Spec{}, false, 7); got.Hardened || got.Resources.PIDs != 0 || got.Network.Mode != "" {
		t.Errorf("a Spec that is not hardened became %+v", got)
	}
	for _, tt := range []struct{ asked, own, want int64 }{
		{0, 0, sandbox.HardenedPIDs}, {0, 4096, sandbox.HardenedPIDs}, {0, 100, 100}, {100, 4096, 100},
		{-1, 0, sandbox.HardenedPIDs}, {0, -1, sandbox.HardenedPIDs}, {sandbox.HardenedPIDs + 1, 0, sandbox.HardenedPIDs},
	} {
		got := Complete(sandbox.Spec{Hardened: true, Resources: sandbox.Resources{PIDs: tt.asked}}, false, tt.own)
		if got.Resources.PIDs != tt.want {
			t.Errorf("%d processes asked for, %d the backend's: got %d, want %d", tt.asked, tt.own, got.Resources.PIDs, tt.want)
		}
	}
	for asked, want := range map[sandbox.NetworkMode]sandbox.NetworkMode{
		"": sandbox.NetworkNone, sandbox.NetworkPublic: sandbox.NetworkPublic, sandbox.NetworkAllowlist: sandbox.NetworkAllowlist,
	} {
		if got := Complete(sandbox.Spec{Network: sandbox.Network{Mode: asked}}, true, 0); !got.Hardened || got.Network.Mode != want {
			t.Errorf("network %q became %q, hardened %v", asked, got.Network.Mode, got.Hardened)
		}
	}
}

func TestWritable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		workdir     string
		taken       []string
		more, fewer []string
	}{
		{workdir: "/"},
		{workdir: ""},
		{workdir: "relative"},
		{workdir: "/app/", more: []string{"/app"}},
		{workdir: "/logs/agent"},
		{workdir: "/tmp/work"},
		{workdir: "/tmpwork", more: []string{"/tmpwork"}},
		{workdir: "/app", taken: []string{"/app", "/logs/", "/logs/agent"}, fewer: []string{"/logs"}},
	} {
		want := append(sandbox.HardenedWritable(), tt.more...)
		want = slices.DeleteFunc(want, func(dir string) bool { return slices.Contains(tt.fewer, dir) })
		if got := Writable(tt.workdir, tt.taken); !slices.Equal(got, want) {
			t.Errorf("with working directory %q and mounts at %q: got %q, want %q", tt.workdir, tt.taken, got, want)
		}
	}
}
