package build

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"time"

	"github.com/proctor-run/proctor/sandbox/oci/image"
)

// The kinds of an item.
const (
	kindFile = 'f'
	kindDir  = 'd'
	kindLink = 'l'
	kindHard = 'h' // another name of a file
)

// item is one file to be written into a root file system, or an archive to be
// extracted there.
type item struct {
	Name    string // in the root, of package fs; for an archive the directory
	Kind    byte
	Mode    int64
	Owner   owner
	Target  string // of a link; of another name the file's, as Name is one
	Size    int64  // of a file
	Archive bool

	mtime  time.Time
	source tree // of content
	from   string
	data   []byte // the content, where there is no source
}

// placing is a list of items that fit into a root file system: what has to be
// a directory is one, and the directories on the way are items where they are
// missing. No name leads through a link.
type placing struct {
	root    tree
	parents *owner // of directories that are made on the way; nil: who mkdir gives them to
	items   []item
	made    map[string]int // the last of items with a name
}

func newPlacing(root tree) *placing { return &placing{root: root, made: map[string]int{}} }

// kindAt is what stands at a name; 0 when there is nothing.
func (p *placing) kindAt(name string) (byte, error) {
	if name == "." {
		return kindDir, nil
	}
	if i, ok := p.made[name]; ok {
		return p.items[i].Kind, nil
	}
	info, err := lstat(p.root, name)
	switch {
	case err != nil || info == nil:
		return 0, err
	case info.IsDir():
		return kindDir, nil
	}
	return kindFile, nil
}

// mkdirs makes a directory where it is missing, with its parents.
func (p *placing) mkdirs(dir string) error {
	switch kind, err := p.kindAt(dir); {
	case err != nil:
		return err
	case kind == kindDir:
		return nil
	case kind != 0:
		return fmt.Errorf("%q in the image: %w", "/"+dir, errNotDir)
	}
	if err := p.mkdirs(path.Dir(dir)); err != nil {
		return err
	}
	it, err := p.newDir(dir)
	if err != nil {
		return err
	}
	return p.append(it)
}

// newDir is a directory as mkdir(2) makes it: below one with the set-group-id bit it
// has the bit and the group, and keeps the bit when it is given to somebody.
func (p *placing) newDir(dir string) (item, error) {
	it := item{Name: dir, Kind: kindDir, Mode: 0o755}
	mode, group, err := p.dirAt(path.Dir(dir))
	if err != nil {
		return it, err
	}
	if mode&setGroupID != 0 {
		it.Mode |= setGroupID
		it.Owner.GID = group
	}
	if p.parents != nil {
		it.Owner = *p.parents
	}
	return it, nil
}

// dirAt is the mode of a directory, and the group that it belongs to.
func (p *placing) dirAt(dir string) (mode int64, group int, err error) {
	if i, ok := p.made[dir]; ok {
		return p.items[i].Mode, p.items[i].Owner.GID, nil
	}
	info, err := lstat(p.root, dir)
	if err != nil || info == nil {
		return 0, 0, err
	}
	return tarMode(info.Mode()), ownerOf(info).GID, nil
}

// put adds an item. Files replace files and links; a directory changes the
// mode and owner of one that is there.
func (p *placing) put(it item) error {
	if err := p.mkdirs(path.Dir(it.Name)); err != nil {
		return err
	}
	kind, err := p.kindAt(it.Name)
	if err != nil {
		return err
	}
	if kind != 0 && (kind == kindDir) != (it.Kind == kindDir) {
		if kind == kindDir {
			return fmt.Errorf("%q in the image is a directory, which a file cannot replace", "/"+it.Name)
		}
		return fmt.Errorf("%q in the image is not a directory, and a directory cannot replace it", "/"+it.Name)
	}
	return p.append(it)
}

// extract adds an archive whose content goes below the item's name.
func (p *placing) extract(it item) error {
	if err := p.mkdirs(it.Name); err != nil {
		return err
	}
	p.items = append(p.items, it)
	return nil
}

func (p *placing) append(it item) error {
	if len(p.items) >= image.DefaultMaxEntries {
		return fmt.Errorf("%w: more than %d files", image.ErrLimit, image.DefaultMaxEntries)
	}
	p.items, p.made[it.Name] = append(p.items, it), len(p.items)
	return nil
}

// digest names the items by their content, or by where it comes from. Times do
// not count.
func (p *placing) digest(ctx context.Context, content bool) (string, error) {
	h := sha256.New()
	for i := range p.items {
		it := &p.items[i]
		it.describe(h)
		if !content && it.source != nil {
			_, _ = fmt.Fprintf(h, "%q\n", it.from)
			continue
		}
		if it.Kind != kindFile {
			continue
		}
		if err := it.copyTo(ctx, h); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (it *item) describe(h hash.Hash) {
	_, _ = fmt.Fprintf(h, "%c %q %o %d:%d %q %d %t\n", it.Kind, it.Name, it.Mode, it.Owner.UID, it.Owner.GID, it.Target, it.Size, it.Archive)
}

// copyTo writes the content of a file, all of it and no more.
func (it *item) copyTo(ctx context.Context, w io.Writer) error {
	if it.source == nil {
		_, err := w.Write(it.data)
		return err
	}
	f, err := it.source.Open(it.from)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	n, err := io.Copy(w, io.LimitReader(&contextReader{ctx, f}, it.Size))
	if err == nil && n != it.Size {
		err = fmt.Errorf("%q: %w", it.from, errChanges)
	}
	return err
}

var errChanges = errors.New("it changes while it is read")

// tar writes the items as an archive to be unpacked in the root, and returns
// their digest with content.
func (p *placing) tar(ctx context.Context, w io.Writer) (digest string, err error) {
	h := sha256.New()
	tw := &layerWriter{Writer: tar.NewWriter(w), root: p.root, begun: map[string]bool{}}
	for i := range p.items {
		it := &p.items[i]
		it.describe(h)
		if it.Archive {
			err = it.extractTo(ctx, tw, h)
		} else {
			err = it.writeTo(ctx, tw, h)
		}
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), tw.Close()
}

func (it *item) writeTo(ctx context.Context, tw *layerWriter, h hash.Hash) error {
	hdr := &tar.Header{Name: it.Name, Mode: it.Mode, Uid: it.Owner.UID, Gid: it.Owner.GID, ModTime: it.mtime, Format: tar.FormatPAX}
	switch it.Kind {
	case kindDir:
		hdr.Typeflag, hdr.Name = tar.TypeDir, it.Name+"/"
	case kindLink:
		hdr.Typeflag, hdr.Linkname = tar.TypeSymlink, it.Target
	case kindHard:
		hdr.Typeflag, hdr.Linkname = tar.TypeLink, it.Target
	default:
		hdr.Typeflag, hdr.Size = tar.TypeReg, it.Size
	}
	if err := tw.header(hdr); err != nil {
		return fmt.Errorf("%q: %w", it.Name, err)
	}
	if it.Kind != kindFile {
		return nil
	}
	return it.copyTo(ctx, io.MultiWriter(tw, h))
}

// contextReader stops reading when its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}
