package source

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/layerfs"
)

// Candidate is an image that a source has, not unpacked yet.
type Candidate struct {
	Digest string // of the manifest; empty when there is none
	Config []byte // verified
	File   *v1.ConfigFile
	Layers []Layer // one for each diff id

	source io.Closer // what the layers are read from; may be nil
}

// ID names the image by its content.
func (c *Candidate) ID() string { return blob.DigestOf(c.Config) }

// Close closes what the layers are read from.
func (c *Candidate) Close() {
	if c.source != nil {
		_ = c.source.Close() // only read from
	}
}

// Layer gives out one layer as it is stored, compressed or not.
type Layer interface {
	// Open returns the layer. What is read is trusted only after Check
	// returned nil at the end of the stream. count receives bytes as they
	// are fetched.
	Open(ctx context.Context, count func(int)) (Stream, error)
	// Size of what Open returns in bytes, 0 when unknown.
	Size() int64
	// Estimate says how many bytes unpacking the layer fetches, and how many it
	// takes on disk in the end, as far as that can be known before.
	Estimate() (download, disk int64)
	// Origin is where the layer comes from, comparable: what fails for one
	// layer of an origin may fail for each.
	Origin() any
}

// expansion is by how much a compressed layer grows, in images of
// distributions and languages.
const expansion = 3

// compressed is the estimate for a compressed layer.
func compressed(size int64) (download, disk int64) { return size, expansion * size }

// Stream is an open layer.
type Stream interface {
	io.ReadCloser
	// Check returns an error if what was read is not what it should be.
	Check() error
}

// Bounds on what hostile sources say.
const (
	MaxManifest = 4 << 20 // what registries accept at most
	maxConfig   = 8 << 20
	maxNesting  = 4 // indexes in indexes
)

// shelf holds blobs by digest: an OCI layout or a repository of a registry.
type shelf interface {
	manifest(ctx context.Context, d v1.Descriptor) ([]byte, error)
	config(ctx context.Context, d v1.Descriptor) ([]byte, error)
	layer(d v1.Descriptor) Layer
}

// ErrForeign marks what is not an image that can be run.
var ErrForeign = errors.New("not a container image")

// readCandidate follows a descriptor to the image for this platform. raw is the
// verified manifest that desc describes.
func (f *Finder) readCandidate(ctx context.Context, ref string, from shelf, desc v1.Descriptor, raw []byte) (*Candidate, error) {
	for range maxNesting {
		if !desc.MediaType.IsIndex() && !looksLikeIndex(raw) {
			return f.readImage(ctx, ref, from, desc, raw)
		}
		index, err := v1.ParseIndexManifest(bytes.NewReader(raw))
		if err != nil {
			return nil, fmt.Errorf("reading the index of %q: %w", ref, err)
		}
		if desc, err = f.choose(ref, index.Manifests); err != nil {
			return nil, err
		}
		if raw, err = from.manifest(ctx, desc); err != nil {
			return nil, fmt.Errorf("reading the manifest of %q: %w", ref, err)
		}
		if err := blob.VerifyBytes(fmt.Sprintf("manifest of %q", ref), desc.Digest, raw); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("reading the index of %q: more than %d indexes inside each other", ref, maxNesting)
}

// looksLikeIndex recognises indexes by content, for sources that give no media type.
func looksLikeIndex(raw []byte) bool {
	index, err := v1.ParseIndexManifest(bytes.NewReader(raw))
	if err != nil || len(index.Manifests) == 0 {
		return false
	}
	m, err := v1.ParseManifest(bytes.NewReader(raw))
	return err != nil || (len(m.Layers) == 0 && m.Config.Digest.Hex == "")
}

// choose picks the manifest for the store's platform. Without any platform in
// the index its only manifest is taken, and checked against its config later.
func (f *Finder) choose(ref string, all []v1.Descriptor) (v1.Descriptor, error) {
	var have []string
	var plain, fits []v1.Descriptor
	for _, d := range all {
		switch {
		case d.Platform == nil:
			plain = append(plain, d)
		case d.Platform.Satisfies(f.opts.Platform):
			fits = append(fits, d)
		case d.Platform.OS != "unknown": // attestations
			have = append(have, d.Platform.String())
		}
	}
	if len(fits) > 0 {
		slices.SortStableFunc(fits, func(a, b v1.Descriptor) int {
			return cmp.Compare(variantRank(a.Platform.Variant), variantRank(b.Platform.Variant))
		})
		return fits[0], nil
	}
	if len(plain) == 1 {
		return plain[0], nil
	}
	if len(plain) > 1 {
		return v1.Descriptor{}, fmt.Errorf("reading the index of %q: %d manifests without a platform, expected one", ref, len(plain))
	}
	slices.Sort(have)
	return v1.Descriptor{}, &PlatformError{Ref: ref, Want: f.opts.Platform.String(), Have: slices.Compact(have)}
}

// variantRank orders the variants of one architecture by how many machines run
// them: the plain one, then arm's v8, v7, v6, v5, then those for newer machines.
func variantRank(variant string) int {
	order := []string{"", "v8", "v1", "v7", "v6", "v5"}
	if i := slices.Index(order, variant); i >= 0 {
		return i
	}
	return len(order)
}

func (f *Finder) readImage(ctx context.Context, ref string, from shelf, desc v1.Descriptor, raw []byte) (*Candidate, error) {
	m, err := v1.ParseManifest(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("reading the manifest of %q: %w", ref, err)
	}
	if m.SchemaVersion != 2 {
		return nil, fmt.Errorf("reading the manifest of %q: schema version %d, expected 2", ref, m.SchemaVersion)
	}
	switch m.Config.MediaType {
	case types.OCIConfigJSON, types.DockerConfigJSON, "":
	default:
		return nil, fmt.Errorf("reading the manifest of %q: config of type %q: %w", ref, m.Config.MediaType, ErrForeign)
	}
	config, err := from.config(ctx, m.Config)
	if err != nil {
		return nil, fmt.Errorf("reading the config of %q: %w", ref, err)
	}
	if err := blob.VerifyBytes(fmt.Sprintf("config of %q", ref), m.Config.Digest, config); err != nil {
		return nil, err
	}
	c := &Candidate{Digest: desc.Digest.String(), Config: config}
	for _, l := range m.Layers {
		c.Layers = append(c.Layers, from.layer(l))
	}
	return c, f.checkCandidate(ref, c)
}

// checkCandidate parses the config and compares it with what was found.
func (f *Finder) checkCandidate(ref string, c *Candidate) error {
	file, err := ParseConfig(c.Config)
	if err != nil {
		return fmt.Errorf("reading %q: %w", ref, err)
	}
	c.File = file
	if n := len(file.RootFS.DiffIDs); n != len(c.Layers) || n > layerfs.MaxLayers {
		return fmt.Errorf("reading %q: %d layers and %d diff ids, expected as many of both and at most %d", ref, len(c.Layers), n, layerfs.MaxLayers)
	}
	if !f.Fits(file) {
		have := v1.Platform{OS: file.OS, Architecture: file.Architecture, Variant: file.Variant}
		return &PlatformError{Ref: ref, Want: f.opts.Platform.String(), Have: []string{have.String()}}
	}
	return nil
}

// Fits reports whether an image can run here, as far as its config says.
func (f *Finder) Fits(file *v1.ConfigFile) bool {
	return (file.OS == "" || file.OS == f.opts.Platform.OS) &&
		(file.Architecture == "" || file.Architecture == f.opts.Platform.Architecture)
}

// ParseConfig reads the config of an image.
func ParseConfig(raw []byte) (*v1.ConfigFile, error) {
	var file v1.ConfigFile
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, fmt.Errorf("reading image config: %w", err)
	}
	return &file, nil
}
