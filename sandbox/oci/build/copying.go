package build

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"

	"github.com/proctor-run/proctor/sandbox/buildcontext"
	"github.com/proctor-run/proctor/sandbox/oci/image"
)

// copying is a COPY or ADD instruction with its variables replaced.
type copying struct {
	sources  []string
	inline   []instructions.SourceContent
	dest     string
	image    *image.Image // where the sources are; nil means the context
	chown    string
	chmod    string
	excludes []string
	unpack   bool // extract archives
	remote   bool // may name URLs, which are refused
}

func copyOf(c *instructions.CopyCommand) *copying {
	return &copying{
		sources: c.SourcePaths, inline: c.SourceContents, dest: c.DestPath,
		chown: c.Chown, chmod: c.Chmod, excludes: c.ExcludePatterns,
	}
}

func addOf(c *instructions.AddCommand) *copying {
	return &copying{
		sources: c.SourcePaths, inline: c.SourceContents, dest: c.DestPath,
		chown: c.Chown, chmod: c.Chmod, excludes: c.ExcludePatterns, unpack: c.Unpack == nil || *c.Unpack, remote: true,
	}
}

// copyist lays out what a copying writes.
type copyist struct {
	op       *copying
	source   tree
	fromHost bool // files of the context belong to root, whoever has them there
	target   *placing
	owner    *owner // nil: as the source has it
	mode     *fs.FileMode
	excludes buildcontext.Ignore
	isDir    bool   // the destination is a directory
	dest     string // resolved
	// first are the names in the target that files of a source's directory with several
	// names got first.
	first map[[2]uint64]string
}

// layOut finds what a copying writes into a root file system.
func layOut(op *copying, source, root tree, dir string) (*placing, error) {
	c := &copyist{op: op, source: source, fromHost: op.image == nil, target: newPlacing(root)}
	if err := c.options(); err != nil {
		return nil, err
	}
	if err := c.destination(dir); err != nil {
		return nil, err
	}
	for _, s := range op.sources {
		if isRemote(s) {
			return nil, checkSources([]string{s})
		}
		if err := c.add(s); err != nil {
			return nil, err
		}
	}
	for _, in := range op.inline {
		at := c.dest
		if c.isDir {
			at = path.Join(c.dest, path.Base(in.Path))
		}
		if err := c.target.put(c.own(item{Name: at, Kind: kindFile, Mode: 0o644, data: []byte(in.Data), Size: int64(len(in.Data))})); err != nil {
			return nil, err
		}
	}
	return c.target, nil
}

func (c *copyist) options() error {
	if c.op.chown != "" {
		o, err := findOwner(c.target.root, c.op.chown)
		if err != nil {
			return fmt.Errorf("--chown=%s: %w", c.op.chown, err)
		}
		c.owner, c.target.parents = &o, &o
	}
	if c.op.chmod != "" {
		n, err := strconv.ParseUint(c.op.chmod, 8, 32)
		if err != nil || n > 0o7777 {
			return unsupported(fmt.Sprintf("--chmod=%s: a mode that is not an octal number", c.op.chmod))
		}
		m := fs.FileMode(n)
		c.mode = &m
	}
	var err error
	c.excludes, err = buildcontext.ParseIgnore([]byte(strings.Join(c.op.excludes, "\n")))
	return err
}

// destination resolves the target's links and tells directories from files.
func (c *copyist) destination(dir string) error {
	name := c.op.dest
	if !path.IsAbs(name) {
		name = path.Join(dir, name)
	}
	base := path.Base(c.op.dest)
	c.isDir = strings.HasSuffix(c.op.dest, "/") || base == "." || base == ".."
	real, info, err := resolve(c.target.root, name)
	if err != nil {
		return fmt.Errorf("destination %q: %w", c.op.dest, err)
	}
	if c.isDir && info != nil && !info.IsDir() {
		return fmt.Errorf("destination %q: %w", c.op.dest, errNotDir)
	}
	c.isDir = c.isDir || info != nil && info.IsDir()
	if len(c.op.sources)+len(c.op.inline) > 1 && !c.isDir {
		return fmt.Errorf("destination %q: with more than one source it has to be a directory and end with /", c.op.dest)
	}
	c.dest = real
	if c.isDir {
		return c.target.mkdirs(real)
	}
	return nil
}

// add copies what one source names.
func (c *copyist) add(pattern string) error {
	names, err := match(c.source, pattern)
	if err != nil {
		return err
	}
	for _, name := range names {
		real, info, err := resolve(c.source, name)
		if err == nil && info == nil {
			err = fs.ErrNotExist
			if c.fromHost {
				err = fmt.Errorf("%w in the build context, or the .dockerignore leaves it out", fs.ErrNotExist)
			}
		}
		if err != nil {
			return fmt.Errorf("%q: %w", pattern, err)
		}
		switch {
		case info.IsDir():
			err = c.addDir(real)
		case !info.Mode().IsRegular():
			err = errors.New("neither a file nor a directory")
		case c.excludes.Excludes(path.Base(name)):
		default:
			err = c.addFile(real, path.Base(name), info)
		}
		if err != nil {
			return fmt.Errorf("%q: %w", pattern, err)
		}
	}
	return nil
}

// addFile copies one file, or extracts it.
func (c *copyist) addFile(real, base string, info fs.FileInfo) error {
	it := c.item(c.dest, real, info)
	if c.op.unpack {
		archive, err := isArchive(c.source, real)
		if err != nil {
			return err
		}
		if archive {
			it.Archive = true
			return c.target.extract(it)
		}
	}
	if c.isDir {
		it.Name = path.Join(c.dest, base)
	}
	return c.target.put(it)
}

// addDir copies what is in a directory, not the directory itself.
func (c *copyist) addDir(real string) error {
	if err := c.target.mkdirs(c.dest); err != nil {
		return err
	}
	c.first = map[[2]uint64]string{}
	return c.walk(real, ".")
}

func (c *copyist) walk(dir, below string) error {
	list, err := c.source.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		from, rel := path.Join(dir, e.Name()), path.Join(below, e.Name())
		excluded := c.excludes.Excludes(rel)
		if excluded && !e.IsDir() {
			continue
		}
		info, err := c.source.Lstat(from)
		if err != nil {
			return err
		}
		if !excluded {
			if err := c.addEntry(path.Join(c.dest, rel), from, info); err != nil {
				return err
			}
		}
		if info.IsDir() {
			if err := c.walk(from, rel); err != nil {
				return err
			}
		}
	}
	return nil
}

// addEntry copies one entry of a directory, links as links.
func (c *copyist) addEntry(name, from string, info fs.FileInfo) error {
	it := c.item(name, from, info)
	switch it.Kind {
	case kindLink:
		var err error
		if it.Target, err = c.source.ReadLink(from); err != nil {
			return err
		}
	case kindFile:
		if !info.Mode().IsRegular() {
			return nil // sockets, pipes and devices
		}
		c.share(&it, info)
	}
	return c.target.put(it)
}

// share makes an item another name of a file that has one in the target. Files of the
// context are each their own: what it is known by is their content.
func (c *copyist) share(it *item, info fs.FileInfo) {
	file, ok := linkedOf(info)
	if !ok || c.fromHost {
		return
	}
	name, again := c.first[file]
	if !again {
		c.first[file] = it.Name
		return
	}
	it.Kind, it.Target, it.Size, it.source = kindHard, name, 0, nil
}

// item describes a file of the source as it will be.
func (c *copyist) item(name, from string, info fs.FileInfo) item {
	const kept = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	it := item{Name: name, Kind: kindFile, Mode: tarMode(info.Mode() & kept), mtime: info.ModTime(), source: c.source, from: from}
	switch {
	case info.IsDir():
		it.Kind = kindDir
	case info.Mode()&fs.ModeSymlink != 0:
		it.Kind = kindLink
	case info.Mode().IsRegular():
		it.Size = info.Size()
	}
	if !c.fromHost {
		it.Owner = ownerOf(info)
	}
	return c.own(it)
}

// own applies --chown and --chmod.
func (c *copyist) own(it item) item {
	if c.owner != nil {
		it.Owner = *c.owner
	}
	if c.mode != nil && it.Kind != kindLink {
		it.Mode = int64(*c.mode)
	}
	return it
}

// modeBits are the bits of chmod beyond the permissions.
var modeBits = map[int64]fs.FileMode{0o4000: fs.ModeSetuid, setGroupID: fs.ModeSetgid, 0o1000: fs.ModeSticky}

const setGroupID = 0o2000

// tarMode is a mode in the numbers of chmod.
func tarMode(m fs.FileMode) int64 {
	n := int64(m.Perm())
	for bit, mode := range modeBits {
		if m&mode != 0 {
			n |= bit
		}
	}
	return n
}
