package oci

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/sandbox/internal/rootfs"
)

// The files in the directory of a sandbox.
const (
	fileOwner  = "owner.json"  // whose it is, see record
	fileLaunch = "launch.json" // what the helper does, see launch
	fileConfig = "config.json" // of the OCI bundle
	filePID    = "pid"         // the runtime writes the first process here
	dirTrees   = "trees"       // a tmpfs with the trees above the lower directories
	dirBase    = "base"        // where the lower directories are mounted alone, below snapshots
	dirUpper   = "upper"       // what commands write, one directory per part
	dirWork    = "work"        // of the overlays
	dirRoot    = "root"        // where the root file system is mounted
	dirMemory  = "memory"      // for the upper layer where the disk cannot hold one
	dirMounts  = "mounts"      // sources of mounts that go with the sandbox
	dirRuntime = "run"         // the runtime's own state
)

// planImage lays out the root of a sandbox made of an image's layers.
func planImage(layers []string, fresh func(rootfs.Attributes) rootfs.Tree) *rootPlan {
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
	plan := &rootPlan{fresh: fresh(below), hide: rootfs.Tree{}}
	e, ok := below("/")
	if !ok {
		e = rootfs.Entry{Mode: 0o755}
	}
	plan.parts = []rootfs.Part{{Path: "/", Lower: layers, Mode: e.Mode, UID: e.UID, GID: e.GID}}
	return plan
}

// write completes the parts of the plan for a sandbox in dir, and creates what
// they need there, except the trees.
func (p *rootPlan) write(dir string) error {
	at := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	if err := os.Mkdir(at(dirTrees), 0o700); err != nil {
		return err
	}
	if err := p.skeleton.Create(at(dirRoot)); err != nil {
		return err
	}
	for i := range p.parts {
		pt := &p.parts[i]
		pt.Upper, pt.Work = at(dirUpper, strconv.Itoa(i)), at(dirWork, strconv.Itoa(i))
		if err := pt.MakeUpper(); err != nil {
			return err
		}
	}
	return nil
}

// root is what has to be mounted for a sandbox in dir.
func (p *rootPlan) root(dir string, base *base) rootfs.Root {
	r := rootfs.Root{
		Dir: filepath.Join(dir, dirRoot), Parts: p.parts, Trees: filepath.Join(dir, dirTrees), Fresh: p.fresh, Hide: p.hide,
		UserXattr: base.userXattr, Layer: base.layer, Memory: filepath.Join(dir, dirMemory),
	}
	r.AddTrees()
	return r
}

// hostMounts lists what is mounted in the caller's mount namespace.
func hostMounts() ([]mountPoint, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("listing mounts: %w", err)
	}
	return parseMountInfo(string(data)), nil
}

// parseMountInfo reads the format of proc_pid_mountinfo(5).
func parseMountInfo(text string) []mountPoint {
	var mounts []mountPoint
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(line, " - ")
		fields, types := strings.Fields(before), strings.Fields(after)
		if ok && len(fields) >= 5 && len(types) >= 1 {
			mounts = append(mounts, mountPoint{path: unescapeMount(fields[4]), fsType: types[0]})
		}
	}
	return mounts
}

// unescapeMount undoes the octal escapes of blanks and backslashes.
func unescapeMount(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
