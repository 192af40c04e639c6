package rootplan

import (
	"os"
	"path/filepath"

	"github.com/proctor-run/proctor/sandbox/internal/rootfs"
)

// Image lays out the root of a sandbox made of an image's layers.
func Image(layers []string, fresh func(rootfs.Attributes) rootfs.Tree) *Plan {
	below := func(dir string) (rootfs.Entry, bool) {
		for _, l := range layers {
			info, err := os.Lstat(filepath.Join(l, dir))
			if err == nil && info.IsDir() {
				return rootfs.Stat(info), true
			}
			if err == nil {
				return rootfs.Entry{}, false
			}
		}
		return rootfs.Entry{}, false
	}
	plan := &Plan{fresh: fresh(below), hide: rootfs.Tree{}}
	e, ok := below("/")
	if !ok {
		e = rootfs.Entry{Mode: 0o755}
	}
	plan.parts = []rootfs.Part{{Path: "/", Lower: layers, Mode: e.Mode, UID: e.UID, GID: e.GID}}
	return plan
}
