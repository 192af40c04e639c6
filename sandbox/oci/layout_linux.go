package oci

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The files in the directory of a sandbox.
const (
	fileOwner  = "owner.json"  // whose it is, see record
	fileLaunch = "launch.json" // what the helper does, see launch
	fileConfig = "config.json" // of the OCI bundle
	filePID    = "pid"         // the runtime writes the first process here
	dirTrees   = "trees"       // a tmpfs with the trees above the lower directories
	dirUpper   = "upper"       // what commands write, one directory per part
	dirWork    = "work"        // of the overlays
	dirRoot    = "root"        // where the root file system is mounted
	dirMemory  = "memory"      // for the upper layer where the disk cannot hold one
	dirMounts  = "mounts"      // sources of mounts that go with the sandbox
	dirRuntime = "run"         // the runtime's own state
)

// planImage lays out the root of a sandbox made of an image's layers.
func planImage(layers []string, fresh func(attributes) tree) *rootPlan {
	below := func(dir string) (entry, bool) {
		for _, l := range layers {
			info, err := os.Lstat(filepath.Join(l, dir))
			if err == nil && info.IsDir() {
				return statEntry(info), true
			}
			if err == nil {
				return entry{}, false
			}
		}
		return entry{}, false
	}
	plan := &rootPlan{fresh: fresh(below), hide: tree{}}
	e, ok := below("/")
	if !ok {
		e = entry{Mode: 0o755}
	}
	plan.parts = []part{{Path: "/", Lower: layers, Mode: e.Mode, UID: e.UID, GID: e.GID}}
	return plan
}

// The trees lie on a tmpfs, because the directories of an overlay must not lie
// in each other, and one of them can be the host's root.
const (
	dirFresh = dirTrees + "/fresh"
	dirHide  = dirTrees + "/hide"
)

// write completes the parts of the plan for a sandbox in dir, and creates what
// they need there, except the trees.
func (p *rootPlan) write(dir string) error {
	at := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	if err := os.Mkdir(at(dirTrees), 0o700); err != nil {
		return err
	}
	if err := p.skeleton.create(at(dirRoot)); err != nil {
		return err
	}
	for i := range p.parts {
		pt := &p.parts[i]
		var lower []string
		if p.fresh.has(pt.Path) {
			lower = append(lower, at(dirFresh, pt.Path))
		}
		if p.hide.has(pt.Path) {
			lower = append(lower, at(dirHide, pt.Path))
		}
		pt.Lower = append(lower, pt.Lower...)
		pt.Upper, pt.Work = at(dirUpper, strconv.Itoa(i)), at(dirWork, strconv.Itoa(i))
		if err := pt.makeUpper(); err != nil {
			return err
		}
	}
	return nil
}

// makeUpper creates the directories that an overlay writes to.
func (p *part) makeUpper() error {
	if err := os.MkdirAll(p.Work, 0o755); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p.Upper), 0o755); err != nil {
		return err
	}
	return entry{Kind: fs.ModeDir, Mode: p.Mode, UID: p.UID, GID: p.GID}.create(p.Upper)
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
