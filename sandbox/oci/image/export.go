package image

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/layerfs"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/source"
)

// Export writes an image of the store as a tar that is an OCI layout and a
// docker archive at once, as docker save writes since version 25. Files and
// settings are the image's; the layers are packed anew, so that digests are not
// those of the registry. The same image gives the same bytes. Name, when not
// empty, is noted as the image's name.
func (s *Store) Export(ctx context.Context, img Image, name string, w io.Writer) error {
	x := &exporter{ctx: ctx, tw: tar.NewWriter(w), format: s.disk.format}
	if err := x.export(s, img, name); err != nil {
		return fmt.Errorf("exporting %q: %w", img.Ref, err)
	}
	return nil
}

type exporter struct {
	ctx    context.Context
	tw     *tar.Writer
	format layerfs.Format
}

func (x *exporter) export(s *Store, img Image, name string) error {
	_, file, err := s.baseOf(img)
	if err != nil {
		return err
	}
	file.RootFS.DiffIDs, file.History = nil, nil
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1}
	saved := source.ArchiveImage{RepoTags: []string{}, Layers: []string{}}
	written := map[string]bool{}
	for _, l := range img.Layers {
		d, err := x.layer(l.Dir, written)
		if err != nil {
			return err
		}
		manifest.Layers = append(manifest.Layers, d)
		file.RootFS.DiffIDs = append(file.RootFS.DiffIDs, d.Digest)
		saved.Layers = append(saved.Layers, source.BlobPath(d.Digest))
	}
	if manifest.Config, err = x.json(file, types.OCIConfigJSON); err != nil {
		return err
	}
	d, err := x.json(manifest, types.OCIManifestSchema1)
	if err != nil {
		return err
	}
	saved.Config = source.BlobPath(manifest.Config.Digest)
	if name != "" {
		r, err := source.ParseReference(name)
		if err != nil {
			return err
		}
		d.Annotations = map[string]string{source.AnnotationRef: name, source.AnnotationContainerd: r.Full()}
		if r.Tagged() {
			saved.RepoTags = append(saved.RepoTags, name)
		}
	}
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{d}}
	for _, f := range []struct {
		name  string
		value any
	}{
		{"index.json", index},
		{"manifest.json", []source.ArchiveImage{saved}},
		{"oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"}},
	} {
		data, err := json.Marshal(f.value)
		if err != nil {
			return fmt.Errorf("writing %s: %w", f.name, err)
		}
		if err := x.file(f.name, data); err != nil {
			return err
		}
	}
	if err := x.tw.Close(); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	return nil
}

// layer writes an unpacked layer as a blob. It is packed twice, the first time
// for the digest and the size that stand before it.
func (x *exporter) layer(dir string, written map[string]bool) (v1.Descriptor, error) {
	h := sha256.New()
	size := &byteCount{}
	if _, err := layerfs.Pack(x.ctx, io.MultiWriter(h, size), dir, x.format); err != nil {
		return v1.Descriptor{}, err
	}
	d := v1.Descriptor{MediaType: types.OCIUncompressedLayer, Size: size.n, Digest: v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(h.Sum(nil))}}
	if written[d.Digest.Hex] {
		return d, nil
	}
	written[d.Digest.Hex] = true
	if err := x.header(source.BlobPath(d.Digest), d.Size); err != nil {
		return d, err
	}
	_, err := layerfs.Pack(x.ctx, x.tw, dir, x.format)
	return d, err
}

type byteCount struct{ n int64 }

func (c *byteCount) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

func (x *exporter) json(value any, mediaType types.MediaType) (v1.Descriptor, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("writing a %s: %w", mediaType, err)
	}
	digest, err := v1.NewHash(blob.DigestOf(data))
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("writing a %s: %w", mediaType, err)
	}
	return v1.Descriptor{MediaType: mediaType, Size: int64(len(data)), Digest: digest}, x.file(source.BlobPath(digest), data)
}

func (x *exporter) header(name string, size int64) error {
	if err := x.tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644}); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

func (x *exporter) file(name string, data []byte) error {
	if err := x.header(name, int64(len(data))); err != nil {
		return err
	}
	if _, err := x.tw.Write(data); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
