package image

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// candidate is an image that a source has, not unpacked yet.
type candidate struct {
	digest string // of the manifest; empty when there is none
	config []byte // verified
	file   *v1.ConfigFile
	layers []layerSource // one for each diff id
	source io.Closer     // what the layers are read from; may be nil
}

// id names the image by its content.
func (c *candidate) id() string { return digestOf(c.config) }

func (c *candidate) close() {
	if c.source != nil {
		_ = c.source.Close() // only read from
	}
}

// layerSource gives out one layer as it is stored, compressed or not.
type layerSource interface {
	// open returns the layer. What is read is trusted only after check
	// returned nil at the end of the stream. count receives bytes as they
	// are fetched.
	open(ctx context.Context, work *session, count func(int)) (layerStream, error)
	// size of what open returns, 0 when unknown.
	size() int64
	// origin is where the layer comes from, comparable: what fails for one
	// layer of an origin may fail for each.
	origin() any
}

type layerStream interface {
	io.ReadCloser
	check() error
}

// shelf holds blobs by digest: an OCI layout or a repository of a registry.
type shelf interface {
	manifest(ctx context.Context, d v1.Descriptor) ([]byte, error)
	config(ctx context.Context, d v1.Descriptor) ([]byte, error)
	layer(d v1.Descriptor) layerSource
}

// errForeign marks what is not an image that can be run.
var errForeign = errors.New("not a container image")

// readCandidate follows a descriptor to the image for this platform. raw is the
// verified manifest that desc describes.
func (s *Store) readCandidate(ctx context.Context, ref string, from shelf, desc v1.Descriptor, raw []byte) (*candidate, error) {
	for range maxNesting {
		if !desc.MediaType.IsIndex() && !looksLikeIndex(raw) {
			return s.readImage(ctx, ref, from, desc, raw)
		}
		index, err := v1.ParseIndexManifest(bytes.NewReader(raw))
		if err != nil {
			return nil, fmt.Errorf("reading the index of %q: %w", ref, err)
		}
		if desc, err = s.choose(ref, index.Manifests); err != nil {
			return nil, err
		}
		if raw, err = from.manifest(ctx, desc); err != nil {
			return nil, fmt.Errorf("reading the manifest of %q: %w", ref, err)
		}
		if err := verifyBytes(fmt.Sprintf("manifest of %q", ref), desc.Digest, raw); err != nil {
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
func (s *Store) choose(ref string, all []v1.Descriptor) (v1.Descriptor, error) {
	var have []string
	var plain, fits []v1.Descriptor
	for _, d := range all {
		switch {
		case d.Platform == nil:
			plain = append(plain, d)
		case d.Platform.Satisfies(s.platform):
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
	return v1.Descriptor{}, &platformError{Ref: ref, Want: s.platform.String(), Have: slices.Compact(have)}
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

func (s *Store) readImage(ctx context.Context, ref string, from shelf, desc v1.Descriptor, raw []byte) (*candidate, error) {
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
		return nil, fmt.Errorf("reading the manifest of %q: config of type %q: %w", ref, m.Config.MediaType, errForeign)
	}
	config, err := from.config(ctx, m.Config)
	if err != nil {
		return nil, fmt.Errorf("reading the config of %q: %w", ref, err)
	}
	if err := verifyBytes(fmt.Sprintf("config of %q", ref), m.Config.Digest, config); err != nil {
		return nil, err
	}
	c := &candidate{digest: desc.Digest.String(), config: config}
	for _, l := range m.Layers {
		c.layers = append(c.layers, from.layer(l))
	}
	return c, s.checkCandidate(ref, c)
}

// checkCandidate parses the config and compares it with what was found.
func (s *Store) checkCandidate(ref string, c *candidate) error {
	file, err := parseConfig(c.config)
	if err != nil {
		return fmt.Errorf("reading %q: %w", ref, err)
	}
	c.file = file
	if n := len(file.RootFS.DiffIDs); n != len(c.layers) || n > maxLayers {
		return fmt.Errorf("reading %q: %d layers and %d diff ids, expected as many of both and at most %d", ref, len(c.layers), n, maxLayers)
	}
	if !s.matches(file) {
		have := v1.Platform{OS: file.OS, Architecture: file.Architecture, Variant: file.Variant}
		return &platformError{Ref: ref, Want: s.platform.String(), Have: []string{have.String()}}
	}
	return nil
}

// matches reports whether an image can run here, as far as its config says.
func (s *Store) matches(file *v1.ConfigFile) bool {
	return (file.OS == "" || file.OS == s.platform.OS) &&
		(file.Architecture == "" || file.Architecture == s.platform.Architecture)
}
