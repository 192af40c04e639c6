package engine

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/mountinfo"
)

// ReadOnlyBelow adds a read-only mount for each file system that is mounted below the
// source of a read-only one: engines before Docker 25, and later ones on older kernels,
// bind it together with its parent and leave it writable. What the engine's machine has
// mounted and this one has not is the engine's affair.
func ReadOnlyBelow(mounts []sandbox.Mount) ([]sandbox.Mount, error) {
	if !slices.ContainsFunc(mounts, readOnlyBind) {
		return mounts, nil
	}
	mounted, err := mountinfo.Read()
	if err != nil {
		return nil, err
	}
	all := slices.Clone(mounts)
	for _, m := range mounts {
		if readOnlyBind(m) {
			all = append(all, below(m, mounts, mounted)...)
		}
	}
	return all, nil
}

func readOnlyBind(m sandbox.Mount) bool { return m.ReadOnly && !m.Volume }

// below are the mounts for what is mounted below the source of one of mounts.
func below(top sandbox.Mount, mounts []sandbox.Mount, mounted []mountinfo.Mount) []sandbox.Mount {
	source, err := filepath.EvalSymlinks(top.Source)
	if err != nil {
		return nil // it is the engine that has to find it
	}
	var more []sandbox.Mount
	for _, m := range mountinfo.Below(mounted, source) {
		one := sandbox.Mount{Source: m.Path, Target: path.Join(top.Target, strings.TrimPrefix(m.Path, source)), ReadOnly: true}
		if _, err := os.Lstat(m.Path); errors.Is(err, fs.ErrNotExist) {
			continue // another mount hides it
		}
		// Two may be mounted at one place, of which the last is seen.
		if !slices.Contains(more, one) && !covered(one.Target, top.Target, mounts) {
			more = append(more, one)
		}
	}
	return more
}

// covered reports whether one of mounts has put something else, below top, at or above
// a place.
func covered(place, top string, mounts []sandbox.Mount) bool {
	within := func(name, dir string) bool { return strings.HasPrefix(name+"/", strings.TrimSuffix(dir, "/")+"/") }
	return slices.ContainsFunc(mounts, func(m sandbox.Mount) bool {
		target := path.Clean(m.Target)
		return target != path.Clean(top) && within(target, path.Clean(top)) && within(place, target)
	})
}
