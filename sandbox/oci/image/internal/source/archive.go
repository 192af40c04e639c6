package source

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
)

// archive is a tar as docker save writes it: manifest.json lists images, each
// with the names of its config and of its layers in the tar.
type archive struct {
	path    string
	file    *os.File
	entries map[string]archiveEntry
}

// archiveEntry is where a file's content lies in the tar, or what it links to.
type archiveEntry struct {
	offset, size int64
	link         string
}

// ArchiveImage is an element of an archive's manifest.json.
type ArchiveImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// maxArchiveEntries bounds the table of contents of an archive. Each layer has
// three entries in the oldest form.
const maxArchiveEntries = 1 << 16

func (f *Finder) openArchive(ctx context.Context, name string) (*archive, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	a := &archive{path: name, file: file, entries: map[string]archiveEntry{}}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("reading docker archive %q: %w", name, errors.New("not a regular file")), err, file.Close())
	}
	if err := f.inflate(ctx, a); err != nil {
		return nil, errors.Join(fmt.Errorf("reading docker archive %q: %w", name, err), a.Close())
	}
	if err := a.scan(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("reading docker archive %q: %w", name, err), a.Close())
	}
	return a, nil
}

func (a *archive) Close() error {
	if err := a.file.Close(); err != nil {
		return fmt.Errorf("closing the archive: %w", err)
	}
	return nil
}

// inflate replaces a compressed archive by an uncompressed copy, because its
// parts are read in any order.
func (f *Finder) inflate(ctx context.Context, a *archive) error {
	r, compressed, err := blob.Decompress(blob.WithContext(ctx, a.file))
	if err != nil || !compressed {
		if err == nil {
			_, err = a.file.Seek(0, io.SeekStart)
		}
		return err
	}
	defer func() { _ = r.Close() }()
	tmp, err := f.opts.Scratch("archive-*")
	if err != nil {
		return err
	}
	if err := os.Remove(tmp.Name()); err != nil { // it lives as long as it is open
		return errors.Join(err, tmp.Close())
	}
	n, err := io.Copy(tmp, io.LimitReader(r, f.opts.MaxBytes+1))
	if err == nil && n > f.opts.MaxBytes {
		err = fmt.Errorf("%w: more than %d bytes uncompressed", blob.ErrLimit, f.opts.MaxBytes)
	}
	if err == nil {
		_, err = tmp.Seek(0, io.SeekStart)
	}
	if err != nil {
		return errors.Join(err, tmp.Close())
	}
	err = a.Close()
	a.file = tmp
	return err
}

// scan notes where everything is.
func (a *archive) scan(ctx context.Context) error {
	tr := tar.NewReader(a.file)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("after %d entries: %w", len(a.entries), err)
		}
		if len(a.entries) == maxArchiveEntries {
			return fmt.Errorf("%w: more than %d entries", blob.ErrLimit, maxArchiveEntries)
		}
		offset, err := a.file.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		name := path.Clean("/" + hdr.Name)
		switch hdr.Typeflag {
		case tar.TypeReg:
			a.entries[name] = archiveEntry{offset: offset, size: hdr.Size}
		case tar.TypeSymlink:
			a.entries[name] = archiveEntry{link: path.Join(path.Dir(name), hdr.Linkname)}
		case tar.TypeLink:
			a.entries[name] = archiveEntry{link: path.Clean("/" + hdr.Linkname)}
		}
	}
}

// open returns a file of the archive. Old archives share layers by links.
func (a *archive) open(name string) (*io.SectionReader, error) {
	at := path.Clean("/" + name)
	for range maxNesting {
		e, ok := a.entries[at]
		if !ok {
			return nil, fmt.Errorf("docker archive %q has no %q: %w", a.path, name, fs.ErrNotExist)
		}
		if e.link == "" {
			return io.NewSectionReader(a.file, e.offset, e.size), nil
		}
		at = e.link
	}
	return nil, fmt.Errorf("docker archive %q: too many links from %q", a.path, name)
}

func (a *archive) images() ([]ArchiveImage, error) {
	r, err := a.open("manifest.json")
	if err != nil {
		return nil, err
	}
	raw, err := bounded.Read(r, MaxManifest)
	if err != nil {
		return nil, fmt.Errorf("reading manifest.json of docker archive %q: %w", a.path, err)
	}
	var images []ArchiveImage
	if err := json.Unmarshal(raw, &images); err != nil {
		return nil, fmt.Errorf("reading manifest.json of docker archive %q: %w", a.path, err)
	}
	return images, nil
}

// fromArchive finds an image in a docker archive.
func (f *Finder) fromArchive(ctx context.Context, r Reference) (*Candidate, error) {
	a, err := f.openArchive(ctx, r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &MissingError{Ref: r.Raw, Looked: []string{fmt.Sprintf("no docker archive at %q", r.path)}}
	}
	if err != nil {
		return nil, err
	}
	c, err := f.archiveCandidate(r, a)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return c, nil
}

func (f *Finder) archiveCandidate(r Reference, a *archive) (*Candidate, error) {
	images, err := a.images()
	if err != nil {
		return nil, err
	}
	var tags []string
	for _, m := range images {
		tags = append(tags, m.RepoTags...)
	}
	if r.tag != "" {
		images = slices.DeleteFunc(images, func(m ArchiveImage) bool {
			return !slices.ContainsFunc(m.RepoTags, func(have string) bool { return tagged(have, r.tag) })
		})
	}
	switch {
	case len(images) == 0:
		return nil, &MissingError{Ref: r.Raw, Looked: []string{fmt.Sprintf("docker archive %q has only %q", r.path, tags)}}
	case len(images) > 1:
		return nil, fmt.Errorf("reading %q: the archive has %d images that fit, named %q; give one's name after the file", r.Raw, len(images), tags)
	}
	file, err := a.open(images[0].Config)
	if err != nil {
		return nil, err
	}
	c := &Candidate{source: a}
	if c.Config, err = bounded.Read(file, maxConfig); err != nil {
		return nil, fmt.Errorf("reading the config of %q: %w", r.Raw, err)
	}
	for _, l := range images[0].Layers {
		content, err := a.open(l)
		if err != nil {
			return nil, err
		}
		c.Layers = append(c.Layers, archiveLayer{a, content})
	}
	return c, f.checkCandidate(r.Raw, c)
}

// archiveLayer has no digest of its own: what it holds is verified by the diff
// id alone.
type archiveLayer struct {
	archive *archive
	content *io.SectionReader
}

func (l archiveLayer) Size() int64 { return l.content.Size() }

// Estimate counts nothing as fetched: the layer is read where it lies, and is not
// compressed.
func (l archiveLayer) Estimate() (download, disk int64) { return 0, l.content.Size() }

func (l archiveLayer) Origin() any { return l.archive }

func (l archiveLayer) Open(_ context.Context, count func(int)) (Stream, error) {
	section := io.NewSectionReader(l.content, 0, l.content.Size())
	return unverified{blob.Count(section, count)}, nil
}

type unverified struct{ io.Reader }

func (unverified) Check() error { return nil }

func (unverified) Close() error { return nil }
