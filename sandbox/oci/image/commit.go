package image

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/layerfs"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/source"
)

// Changes are what a new image has over its base.
type Changes struct {
	// Ref, when not empty, names the new image for Resolve and Pull.
	Ref string
	// Env is set over the base's.
	Env []string
	// User and Workdir replace the base's when not empty.
	User, Workdir string
	// Shell, Entrypoint and Cmd replace the base's when not nil.
	Shell, Entrypoint, Cmd []string
	// Labels are set over the base's.
	Labels map[string]string
	// CreatedBy is noted in the image's history.
	CreatedBy string
}

// Commit makes a new image of a base and what was written on top of it. The
// directory upper is the upper directory of an overlay on base's Dirs; it is
// moved into the store, or copied when that is on another file system, so it
// must not be mounted any more, and is gone afterwards. Devices and sockets in it are
// removed. An empty upper changes the config alone. The zero Image is a valid
// base.
//
// The same base, content (with times) and changes give the same ID.
func (s *Store) Commit(ctx context.Context, base Image, upper string, changes Changes) (Image, error) {
	var ref source.Reference
	if changes.Ref != "" {
		var err error
		if ref, err = source.ParseReference(changes.Ref); err != nil {
			return Image{}, err
		}
		if ref.Local() {
			return Image{}, fmt.Errorf("committing %q: a new image cannot have the name of a file", changes.Ref)
		}
	}
	keys, file, err := s.baseOf(base)
	if err != nil {
		return Image{}, fmt.Errorf("committing on %q: %w", base.ID, err)
	}
	history := v1.History{CreatedBy: changes.CreatedBy, EmptyLayer: upper == ""}
	if upper != "" {
		layer, err := s.layers.takeUpper(ctx, upper)
		if err != nil {
			return Image{}, fmt.Errorf("committing %q: %w", upper, err)
		}
		diffID, err := v1.NewHash(layer.DiffID)
		if err != nil {
			return Image{}, fmt.Errorf("committing %q: %w", upper, err)
		}
		keys = append(keys, keyOf(layer))
		file.RootFS.DiffIDs = append(file.RootFS.DiffIDs, diffID)
	}
	if len(keys) > layerfs.MaxLayers {
		return Image{}, fmt.Errorf("committing on %q: %w: %d layers, at most %d", base.ID, ErrLimit, len(keys), layerfs.MaxLayers)
	}
	changes.apply(&file.Config)
	file.History = append(file.History, history)
	config, err := json.Marshal(file)
	if err != nil {
		return Image{}, fmt.Errorf("committing on %q: %w", base.ID, err)
	}
	img, err := s.write(record{Layers: keys, Config: config})
	if err != nil {
		return Image{}, err
	}
	if changes.Ref == "" {
		return img, nil
	}
	img.Ref = changes.Ref
	return img, s.disk.writeRef(ref, img.ID, "")
}

// baseOf returns what a new image begins with.
func (s *Store) baseOf(base Image) ([]string, *v1.ConfigFile, error) {
	if base.ID == "" {
		file := &v1.ConfigFile{OS: s.disk.platform.OS, Architecture: s.disk.platform.Architecture}
		file.RootFS.Type = "layers"
		return nil, file, nil
	}
	var rec record
	ok, err := readJSON(s.disk.imageFile(base.ID), &rec)
	if err == nil && !ok {
		err = fmt.Errorf("reading the base image: %w", fs.ErrNotExist)
	}
	if err != nil {
		return nil, nil, err
	}
	file, err := source.ParseConfig(rec.Config)
	return rec.Layers, file, err
}

func (c Changes) apply(to *v1.Config) {
	to.Env = sandbox.MergeEnv(to.Env, c.Env)
	if c.User != "" {
		to.User = c.User
	}
	if c.Workdir != "" {
		to.WorkingDir = c.Workdir
	}
	if c.Shell != nil {
		to.Shell = slices.Clone(c.Shell)
	}
	if c.Entrypoint != nil {
		to.Entrypoint = slices.Clone(c.Entrypoint)
	}
	if c.Cmd != nil {
		to.Cmd = slices.Clone(c.Cmd)
	}
	if len(c.Labels) > 0 && to.Labels == nil {
		to.Labels = map[string]string{}
	}
	maps.Copy(to.Labels, c.Labels)
}

// write stores an image and returns it, claimed.
func (s *Store) write(rec record) (Image, error) {
	id := blob.DigestOf(rec.Config)
	if err := s.disk.writeJSON(s.disk.imageFile(id), rec); err != nil {
		return Image{}, err
	}
	img, ok, err := s.assemble(id, rec)
	if err == nil && !ok {
		err = fmt.Errorf("assembling image %s: a layer is missing: %w", id, fs.ErrNotExist)
	}
	return img, err
}
