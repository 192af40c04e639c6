package layerfs

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
)

// packer writes a directory in the form of an overlay's upper or lower
// directory as the tar of a layer. Equal directories give equal bytes: entries
// are in the order of their names, and owners have no names.
type packer struct {
	dir    string
	tw     *tar.Writer
	format Format
	notes  Notes
	links  map[inode]string // first name of what has several
}

type inode struct{ dev, ino uint64 }

// Pack writes the tar of a layer from dir, which has the form of an overlay's upper
// directory. Devices and sockets in it are removed.
func Pack(ctx context.Context, w io.Writer, dir string, f Format) (Notes, error) {
	p := &packer{dir: dir, tw: tar.NewWriter(w), format: f, links: map[inode]string{}}
	if err := p.children(ctx, ""); err != nil {
		return Notes{}, err
	}
	if err := p.tw.Close(); err != nil {
		return Notes{}, fmt.Errorf("packing a layer: %w", err)
	}
	return p.notes, nil
}

func (p *packer) path(name string) string { return filepath.Join(p.dir, filepath.FromSlash(name)) }

// children writes what is in a directory. An ordinary user's may be closed
// even to its owner; it is opened for as long as that takes.
func (p *packer) children(ctx context.Context, name string) (err error) {
	at := p.path(name)
	entries, err := os.ReadDir(at)
	if errors.Is(err, os.ErrPermission) {
		var restore func() error
		if restore, err = unlock(at, 0o700); err != nil {
			return fmt.Errorf("packing %q: %w", shorten(name), err)
		}
		defer func() { err = errors.Join(err, restore()) }()
		entries, err = os.ReadDir(at)
	}
	if err != nil {
		return fmt.Errorf("packing %q: %w", shorten(name), err)
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		child := join(name, e.Name())
		if len(child) > maxPath {
			return fmt.Errorf("packing %q: %w: name of %d bytes", shorten(child), blob.ErrLimit, len(child))
		}
		if err := p.entry(ctx, child); err != nil {
			return err
		}
	}
	return nil
}

// unlock adds permissions for the owner and returns how to take them away.
func unlock(at string, bits os.FileMode) (restore func() error, err error) {
	var st unix.Stat_t
	if err := unix.Lstat(at, &st); err != nil {
		return nil, os.NewSyscallError("lstat", err)
	}
	mode := st.Mode & 0o7777
	if err := unix.Chmod(at, mode|uint32(bits)); err != nil {
		return nil, os.NewSyscallError("chmod", err)
	}
	return func() error { return unix.Chmod(at, mode) }, nil
}

func (p *packer) entry(ctx context.Context, name string) error {
	var st unix.Stat_t
	if err := unix.Lstat(p.path(name), &st); err != nil {
		return fmt.Errorf("packing %q: %w", shorten(name), err)
	}
	if isWhiteoutStat(&st) {
		dir, base := filepath.Split(name)
		return p.mark(dir + whiteoutPrefix + base)
	}
	hdr, err := p.header(name, &st)
	if err != nil {
		return fmt.Errorf("packing %q: %w", shorten(name), err)
	}
	if hdr == nil { // no part of a layer
		if err := os.Remove(p.path(name)); err != nil {
			return fmt.Errorf("packing %q: %w", shorten(name), err)
		}
		p.notes.Devices++
		return nil
	}
	p.notes.Entries++
	if err := p.tw.WriteHeader(hdr); err != nil {
		return fmt.Errorf("packing %q: %w", shorten(name), err)
	}
	switch hdr.Typeflag {
	case tar.TypeReg:
		if err := p.content(ctx, name, hdr.Size); err != nil {
			return fmt.Errorf("packing %q: %w", shorten(name), err)
		}
	case tar.TypeDir:
		if IsOpaque(p.path(name)) {
			if err := p.mark(name + "/" + whiteoutOpaque); err != nil {
				return err
			}
		}
		return p.children(ctx, name)
	}
	return nil
}

// mark writes a whiteout.
func (p *packer) mark(name string) error {
	p.notes.Entries++
	hdr := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Format: tar.FormatPAX}
	if err := p.tw.WriteHeader(hdr); err != nil {
		return fmt.Errorf("packing %q: %w", shorten(name), err)
	}
	return nil
}

// header describes a file; nil for devices and sockets.
func (p *packer) header(name string, st *unix.Stat_t) (*tar.Header, error) {
	hdr := &tar.Header{Name: name, Mode: int64(st.Mode & 0o7777), Format: tar.FormatPAX}
	hdr.ModTime = timeOf(st.Mtim)
	if p.format == Trusted {
		hdr.Uid, hdr.Gid = int(st.Uid), int(st.Gid)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		hdr.Typeflag, hdr.Name = tar.TypeDir, name+"/"
	case unix.S_IFREG:
		hdr.Typeflag, hdr.Size = tar.TypeReg, st.Size
	case unix.S_IFIFO:
		hdr.Typeflag = tar.TypeFifo
	case unix.S_IFLNK:
		hdr.Typeflag = tar.TypeSymlink
		target, err := os.Readlink(p.path(name))
		if err != nil {
			return nil, err
		}
		hdr.Linkname = target
	default:
		return nil, nil
	}
	if hdr.Typeflag != tar.TypeDir && st.Nlink > 1 {
		id := inode{st.Dev, st.Ino}
		if first, ok := p.links[id]; ok {
			hdr.Typeflag, hdr.Linkname, hdr.Size = tar.TypeLink, first, 0
			return hdr, nil
		}
		p.links[id] = name
	}
	if hdr.Typeflag == tar.TypeSymlink {
		return hdr, nil
	}
	var err error
	hdr.PAXRecords, err = p.xattrs(name)
	return hdr, err
}

// xattrs returns the attributes that belong to a layer, and refuses those with
// which overlay refers to other layers: outside of its mount they mean nothing.
func (p *packer) xattrs(name string) (map[string]string, error) {
	list := make([]byte, maxXattr)
	n, err := unix.Llistxattr(p.path(name), list)
	if errors.Is(err, unix.ENOTSUP) || n == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing attributes: %w", err)
	}
	var records map[string]string
	for _, attr := range slices.Sorted(strings.SplitSeq(strings.TrimRight(string(list[:n]), "\x00"), "\x00")) {
		if _, rest, ok := strings.Cut(attr, ".overlay."); ok && (rest == "redirect" || rest == "metacopy") {
			return nil, fmt.Errorf("attribute %s: mount what is to be committed with redirect_dir=off and metacopy=off: %w", attr, blob.ErrMalformed)
		}
		if attr != "security.capability" && (!strings.HasPrefix(attr, "user.") || strings.HasPrefix(attr, "user.overlay.")) {
			continue
		}
		value := make([]byte, maxXattr)
		n, err := unix.Lgetxattr(p.path(name), attr, value)
		if err != nil {
			return nil, fmt.Errorf("reading attribute %s: %w", attr, err)
		}
		if records == nil {
			records = map[string]string{}
		}
		// PAX records hold no zero bytes in what archive/tar writes for
		// other keys, but it makes an exception for these.
		records[paxXattr+attr] = string(bytes.Clone(value[:n]))
	}
	return records, nil
}

func (p *packer) content(ctx context.Context, name string, size int64) (err error) {
	const flags = os.O_RDONLY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	f, err := os.OpenFile(p.path(name), flags, 0)
	if errors.Is(err, os.ErrPermission) {
		var restore func() error
		if restore, err = unlock(p.path(name), 0o400); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, restore()) }()
		f, err = os.OpenFile(p.path(name), flags, 0)
	}
	if err != nil {
		return err
	}
	n, err := io.Copy(p.tw, io.LimitReader(blob.WithContext(ctx, f), size))
	if err == nil && n != size {
		err = fmt.Errorf("%d bytes of %d: it changes while it is read", n, size)
	}
	p.notes.Bytes += n
	return errors.Join(err, f.Close())
}

func timeOf(ts unix.Timespec) time.Time { return time.Unix(ts.Unix()) }
