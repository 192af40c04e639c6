package build

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/bzip2"
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"

	"github.com/proctor-run/proctor/sandbox/oci/image"
)

var (
	magicBzip2 = []byte("BZh")
	magicXz    = []byte{0xfd, '7', 'z', 'X', 'Z', 0}
)

// inflate undoes the compressions that ADD knows.
func inflate(r io.Reader) (io.ReadCloser, error) {
	in := bufio.NewReader(r)
	magic, err := in.Peek(len(magicXz))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading its first bytes: %w", err)
	}
	switch {
	case bytes.HasPrefix(magic, magicBzip2):
		return io.NopCloser(bzip2.NewReader(in)), nil
	case bytes.HasPrefix(magic, magicXz):
		return nil, unsupported("extracting an archive that is compressed with xz")
	}
	plain, _, err := image.Decompress(in)
	return plain, err
}

// isArchive reports whether ADD extracts a file: a tar with something in it,
// plain or compressed. The name does not matter.
func isArchive(t tree, name string) (bool, error) {
	f, err := t.Open(name)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	plain, err := inflate(f)
	if errors.Is(err, image.ErrMalformed) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = plain.Close() }()
	_, err = tar.NewReader(plain).Next()
	return err == nil, nil
}

// extractTo rewrites an archive's entries so that they lie below the item's
// directory. What the archive is made of goes to the hash.
func (it *item) extractTo(ctx context.Context, tw *layerWriter, h hash.Hash) error {
	f, err := it.source.Open(it.from)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	raw := &io.LimitedReader{R: &contextReader{ctx, f}, N: it.Size}
	hashed := io.TeeReader(raw, h)
	plain, err := inflate(hashed)
	if err != nil {
		return fmt.Errorf("extracting %q: %w", it.from, err)
	}
	defer func() { _ = plain.Close() }()
	if err := it.entries(tar.NewReader(plain), tw); err != nil {
		return fmt.Errorf("extracting %q: %w", it.from, err)
	}
	if _, err := io.Copy(io.Discard, hashed); err != nil {
		return fmt.Errorf("extracting %q: %w", it.from, err)
	}
	if raw.N > 0 {
		return fmt.Errorf("%q: %w", it.from, errChanges)
	}
	return nil
}

func (it *item) entries(tr *tar.Reader, tw *layerWriter) error {
	left := int64(image.DefaultMaxBytes)
	for n := 0; ; n++ {
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading an entry: %w", err)
		}
		if left -= hdr.Size; left < 0 || n >= image.DefaultMaxEntries {
			return image.ErrLimit
		}
		out := entry(hdr, it)
		if out == nil {
			continue
		}
		if err := tw.header(out); err != nil {
			return fmt.Errorf("entry %q: %w", hdr.Name, err)
		}
		if hdr.Typeflag != tar.TypeReg {
			continue
		}
		if _, err := io.Copy(tw, tr); err != nil {
			return fmt.Errorf("entry %q: %w", hdr.Name, err)
		}
	}
}

// entry is where an entry of an archive goes, nil for nowhere: the archive's
// root, devices and pipes. It keeps its owner, whoever the directory is given to.
func entry(hdr *tar.Header, it *item) *tar.Header {
	inside := path.Clean("/" + hdr.Name)
	out := &tar.Header{
		Typeflag: hdr.Typeflag, Name: path.Join(it.Name, inside), Mode: hdr.Mode & 0o7777,
		Uid: hdr.Uid, Gid: hdr.Gid, ModTime: hdr.ModTime, Format: tar.FormatPAX,
	}
	switch hdr.Typeflag {
	case tar.TypeReg:
		out.Size = hdr.Size
	case tar.TypeDir:
		if inside == "/" {
			return nil
		}
		out.Name += "/"
	case tar.TypeSymlink:
		out.Linkname = hdr.Linkname
	case tar.TypeLink:
		out.Linkname = path.Join(it.Name, path.Clean("/"+hdr.Linkname))
	default:
		return nil
	}
	return out
}
