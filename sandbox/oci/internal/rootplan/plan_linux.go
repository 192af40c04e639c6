package rootplan

import (
	"os"
	"path/filepath"
	"strconv"

	"github.com/proctor-run/proctor/sandbox/internal/rootfs"
)

// The directories of a root file system in the directory of its sandbox.
const (
	DirUpper  = "upper"  // what commands write, one directory per part
	DirWork   = "work"   // of the overlays
	DirMemory = "memory" // for the upper layer where the disk cannot hold one

	dirTrees    = "trees"    // a tmpfs with the trees above the lower directories
	dirRoot     = "root"     // where the root file system is mounted
	dirWritable = "writable" // what stays writable of a root file system that does not, one directory each
)

// Plan says how a root file system is put together.
type Plan struct {
	// fresh lies on all lower directories, hide between it and them.
	fresh, hide rootfs.Tree
	// skeleton holds the parts when there are several; nil when "/" is one.
	skeleton rootfs.Tree
	parts    []rootfs.Part
	// Writable are the directories of the sandbox that stay writable when the root
	// file system becomes read-only.
	Writable []string
}

// Write completes the parts of the plan for a sandbox in dir, and creates what
// they need there, except the trees.
func (p *Plan) Write(dir string) error {
	at := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	if err := os.Mkdir(at(dirTrees), 0o700); err != nil {
		return err
	}
	if err := p.skeleton.Create(at(dirRoot)); err != nil {
		return err
	}
	for i := range p.parts {
		pt := &p.parts[i]
		pt.Upper, pt.Work = at(DirUpper, strconv.Itoa(i)), at(DirWork, strconv.Itoa(i))
		if err := pt.MakeUpper(); err != nil {
			return err
		}
	}
	for i := range p.Writable {
		if err := os.MkdirAll(at(dirWritable, strconv.Itoa(i)), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// Root is what has to be mounted for a sandbox in dir. userXattr says how overlays keep their
// attributes, layer that what is written is to be a layer.
func (p *Plan) Root(dir string, userXattr, layer bool) rootfs.Root {
	r := rootfs.Root{
		State: filepath.Dir(dir), Dir: filepath.Join(dir, dirRoot), Parts: p.parts, Trees: filepath.Join(dir, dirTrees), Fresh: p.fresh, Hide: p.hide,
		UserXattr: userXattr, Layer: layer, Memory: filepath.Join(dir, DirMemory),
	}
	for i, name := range p.Writable {
		r.Writable = append(r.Writable, rootfs.Writable{Path: name, At: filepath.Join(dir, dirWritable, strconv.Itoa(i))})
	}
	r.AddTrees()
	return r
}
