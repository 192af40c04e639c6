package runtimes

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox/internal/rootfs"
)

// program is a runtime that is installed on this machine.
type program struct{ path string }

func (p program) Path() string { return p.path }

func (program) Snapshots() bool { return true }

func (program) LateMounts() bool { return true }

func (program) OwnKernel() bool { return false }

// specOf is a bundle for a program, which makes the groups itself.
func (program) specOf(b *Bundle) *spec {
	s := &spec{Bundle: b}
	if b.Groups != nil {
		s.cgroupsPath, s.groupsShown = b.Groups.Path(b.ID), true
	}
	return s
}

// bound has the binds with restrictions made below dir, from where the program takes
// them: its words are for a mount and not for those below it, or only newer versions
// know them. Those below keep what they have when they are bound again; that the mount
// itself does, the program has to be told.
func bound(s *specs.Spec, dir string) []rootfs.Bound {
	var all []rootfs.Bound
	for i := range s.Mounts {
		m := &s.Mounts[i]
		if !slices.Contains(m.Options, "rbind") {
			continue
		}
		flags := mountOf(m.Destination, m.Type, m.Source, m.Options).Flags &^ unix.MS_REC
		if flags == 0 {
			continue
		}
		b := rootfs.Bound{Source: m.Source, At: filepath.Join(dir, strconv.Itoa(i)), Flags: flags}
		m.Source = b.At
		all = append(all, b)
	}
	return all
}

// runc is also what has its command line.
type runc struct{ program }

func (runc) Name() string { return Runc }

func (r runc) Prepare(b *Bundle) (Start, error) {
	s := r.specOf(b)
	argv := []string{r.path, "--root=" + b.at(dirRuntime)}
	if s.cgroupsPath == "" {
		argv = append(argv, "--rootless=true") // cgroups as far as it may
	}
	l := b.launch()
	l.Argv = s.run(argv)
	return s.prepare(l)
}

type crun struct{ program }

func (crun) Name() string { return Crun }

func (c crun) Prepare(b *Bundle) (Start, error) {
	s := c.specOf(b)
	manager := "cgroupfs"
	if s.cgroupsPath == "" {
		manager = "disabled"
	}
	l := b.launch()
	l.Argv, l.HideUnified = s.run([]string{c.path, "--root=" + b.at(dirRuntime), "--cgroup-manager=" + manager}), bothKinds()
	return s.prepare(l)
}

// unifiedDir is where the second cgroup hierarchy of hybrid systems is mounted.
const unifiedDir = "/sys/fs/cgroup/unified"

// bothKinds reports whether crun would refuse to work on this system: it knows
// either kind of cgroups, but not both.
func bothKinds() bool {
	info, err := os.Stat(unifiedDir)
	return err == nil && info.IsDir()
}
