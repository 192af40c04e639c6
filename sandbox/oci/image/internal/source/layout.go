package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
)

// The annotations that name an image in an OCI layout: the one of the image
// specification, and containerd's, whose value is always a full name.
const (
	AnnotationRef        = "org.opencontainers.image.ref.name"
	AnnotationContainerd = "io.containerd.image.name"
)

// layout is an OCI image layout directory.
type layout struct {
	dir   string
	root  *os.Root
	index *v1.IndexManifest
}

var _ shelf = (*layout)(nil)

func openLayout(dir string) (*layout, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	l := &layout{dir: dir, root: root}
	raw, err := l.read("index.json", MaxManifest)
	if err == nil {
		l.index, err = v1.ParseIndexManifest(bytes.NewReader(raw))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading OCI layout %q: %w", dir, err), root.Close())
	}
	return l, nil
}

func (l *layout) Close() error { return l.root.Close() }

// named returns the manifests that the layout has under a name, as same
// compares names.
func (l *layout) named(same func(have string) bool) []v1.Descriptor {
	var found []v1.Descriptor
	for _, d := range l.index.Manifests {
		if same(d.Annotations[AnnotationRef]) || same(d.Annotations[AnnotationContainerd]) {
			found = append(found, d)
		}
	}
	return found
}

func (l *layout) names() []string {
	var names []string
	for _, d := range l.index.Manifests {
		if n := d.Annotations[AnnotationRef]; n != "" {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// open returns a regular file of the layout.
func (l *layout) open(name string) (*os.File, error) {
	info, err := l.root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	}
	return l.root.Open(name)
}

func (l *layout) read(name string, limit int64) ([]byte, error) {
	f, err := l.open(name)
	if err != nil {
		return nil, err
	}
	data, err := bounded.Read(f, limit)
	return data, errors.Join(err, f.Close())
}

func BlobPath(h v1.Hash) string { return path.Join("blobs", h.Algorithm, h.Hex) }

func (l *layout) manifest(_ context.Context, d v1.Descriptor) ([]byte, error) {
	return l.read(BlobPath(d.Digest), MaxManifest)
}

func (l *layout) config(_ context.Context, d v1.Descriptor) ([]byte, error) {
	return l.read(BlobPath(d.Digest), maxConfig)
}

func (l *layout) layer(d v1.Descriptor) Layer { return layoutLayer{l, d} }

type layoutLayer struct {
	layout *layout
	desc   v1.Descriptor
}

func (l layoutLayer) Size() int64 { return l.desc.Size }

func (l layoutLayer) Estimate() (download, disk int64) { return compressed(l.desc.Size) }

func (l layoutLayer) Origin() any { return l.layout }

func (l layoutLayer) Open(_ context.Context, count func(int)) (Stream, error) {
	f, err := l.layout.open(BlobPath(l.desc.Digest))
	if err != nil {
		return nil, fmt.Errorf("reading a layer from OCI layout %q: %w", l.layout.dir, err)
	}
	v, err := blob.NewVerifier(blob.Count(f, count), l.desc.Digest, l.desc.Size)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &verifiedFile{v, f, l.desc.Digest}, nil
}

// verifiedFile is a blob that is verified while it is read.
type verifiedFile struct {
	*blob.Verifier
	file   io.Closer
	digest v1.Hash
}

func (f *verifiedFile) Check() error { return f.Verifier.Check("layer " + f.digest.String()) }

func (f *verifiedFile) Close() error {
	if err := f.file.Close(); err != nil {
		return fmt.Errorf("closing layer %s: %w", f.digest, err)
	}
	return nil
}

// fromLayout finds an image in a layout by the name that a user gave after the
// directory, or its only one.
func (f *Finder) fromLayout(ctx context.Context, r Reference) (*Candidate, error) {
	l, err := openLayout(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &MissingError{Ref: r.Raw, Looked: []string{fmt.Sprintf("no OCI layout at %q", r.path)}}
	}
	if err != nil {
		return nil, err
	}
	found := slices.Clone(l.index.Manifests)
	if r.tag != "" {
		found = l.named(func(have string) bool { return have != "" && tagged(have, r.tag) })
	}
	c, err := f.fromManifests(ctx, r, l, found)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return c, nil
}

// fromManifests reads the one image that a layout has under a name. Several
// manifests are an image for several platforms when each names one.
func (f *Finder) fromManifests(ctx context.Context, r Reference, l *layout, found []v1.Descriptor) (*Candidate, error) {
	if len(found) == 0 {
		where := fmt.Sprintf("OCI layout %q has none of that name, only %q", l.dir, l.names())
		return nil, &MissingError{Ref: r.Raw, Looked: []string{where}}
	}
	// Several names of one manifest are one image.
	slices.SortStableFunc(found, func(a, b v1.Descriptor) int { return strings.Compare(a.Digest.String(), b.Digest.String()) })
	found = slices.CompactFunc(found, func(a, b v1.Descriptor) bool { return a.Digest == b.Digest })
	desc := found[0]
	if len(found) > 1 {
		if slices.ContainsFunc(found, func(d v1.Descriptor) bool { return d.Platform == nil }) {
			return nil, fmt.Errorf("reading %q: OCI layout %q has %d images that fit, named %q; give one's name after the directory", r.Raw, l.dir, len(found), l.names())
		}
		var err error
		if desc, err = f.choose(r.Raw, found); err != nil {
			return nil, err
		}
	}
	raw, err := l.manifest(ctx, desc)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest of %q: %w", r.Raw, err)
	}
	if err := blob.VerifyBytes(fmt.Sprintf("manifest of %q", r.Raw), desc.Digest, raw); err != nil {
		return nil, err
	}
	c, err := f.readCandidate(ctx, r.Raw, l, desc, raw)
	if err != nil {
		return nil, err
	}
	c.source = l
	return c, nil
}

// fromMirror looks an ordinary reference up in one mirror layout; nil when it
// has none of that name.
func (f *Finder) fromMirror(ctx context.Context, r Reference, dir string) (*Candidate, error) {
	l, err := openLayout(dir)
	if err != nil {
		return nil, err
	}
	var found []v1.Descriptor
	if h, err := v1.NewHash(r.name.Identifier()); err == nil {
		for _, d := range l.index.Manifests {
			if d.Digest == h {
				found = append(found, d)
				break
			}
		}
	} else {
		found = l.named(func(have string) bool { return have != "" && sameName(have, r.Full()) })
	}
	if len(found) == 0 {
		return nil, l.Close()
	}
	c, err := f.fromManifests(ctx, r, l, found)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("looking in mirror %q: %w", dir, err), l.Close())
	}
	return c, nil
}
