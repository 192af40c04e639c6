package engine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/mountinfo"
)

func TestReadOnlyBelow(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	if err := os.MkdirAll(filepath.Join(top, "sub", "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		others  []sandbox.Mount
		mounted []string
		want    []string
	}{
		"nothing below":         {mounted: []string{"/", "/proc", top}},
		"two, one in the other": {mounted: []string{top + "/sub", top + "/sub/deep"}, want: []string{"/ro/sub", "/ro/sub/deep"}},
		"one place twice":       {mounted: []string{top + "/sub", top + "/sub"}, want: []string{"/ro/sub"}},
		"covered": {
			others: []sandbox.Mount{{Source: "/x", Target: "/ro/sub"}}, mounted: []string{top + "/sub", top + "/sub/deep"},
		},
		"covered in part": {
			others:  []sandbox.Mount{{Source: "/x", Target: "/ro/sub/deep"}, {Source: "/y", Target: "/"}},
			mounted: []string{top + "/sub", top + "/sub/deep"}, want: []string{"/ro/sub"},
		},
		"hidden by another mount": {mounted: []string{top + "/not/there"}},
	} {
		var mounted []mountinfo.Mount
		for _, m := range c.mounted {
			mounted = append(mounted, mountinfo.Mount{Path: m})
		}
		ro := sandbox.Mount{Source: top, Target: "/ro", ReadOnly: true}
		var got []string
		for _, m := range below(ro, append(c.others, ro), mounted) {
			got = append(got, m.Target)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
