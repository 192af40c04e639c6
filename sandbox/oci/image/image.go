package image

import (
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Image is an image of which every layer is unpacked. Its zero value is the
// empty image "scratch".
type Image struct {
	// Ref is the reference that was asked for.
	Ref string
	// ID is the digest of the image's config, "sha256:…". It names the content:
	// equal IDs have equal layers and config.
	ID string
	// Digest is the digest of the manifest, empty where there was none (a
	// docker archive, a committed image).
	Digest string
	// Layers to put on each other, lowest first. There can be fewer than the
	// image has (what lies below an opaque root is left out) and more (see
	// Layer.Synthetic).
	Layers []Layer
	Config Config
	// UserXattr: overlays on these layers need the mount option userxattr.
	UserXattr bool
}

// Dirs returns the layers' directories in the order of overlay's lowerdir
// option: highest first. A layer that an image has several times, as some have
// empty ones, is there once: the highest says all that the others say, and
// overlay refuses directories that it has already.
func (m Image) Dirs() []string {
	dirs := make([]string, 0, len(m.Layers))
	seen := make(map[string]bool, len(m.Layers))
	for _, l := range slices.Backward(m.Layers) {
		if !seen[l.Dir] {
			seen[l.Dir] = true
			dirs = append(dirs, l.Dir)
		}
	}
	return dirs
}

// Layer is an unpacked layer, shared by all images that have it. Its directory
// is never written to.
type Layer struct {
	// DiffID is the digest of the uncompressed layer, "sha256:…".
	DiffID string
	// Dir is the absolute path of the unpacked layer.
	Dir string
	// Synthetic layers are not the image's own. They give directories that the
	// layer below them holds only as parents of something the mode and owner
	// that lower layers define for them.
	Synthetic bool
	Notes     Notes
}

// Notes counts what unpacking a layer did or could not keep.
type Notes struct {
	Entries int   `json:"entries"`
	Bytes   int64 `json:"bytes"` // of file content
	// ForeignOwners: entries whose owner could not be set.
	ForeignOwners int `json:"foreign_owners,omitempty"`
	// Devices that were not created.
	Devices int `json:"devices,omitempty"`
	// Xattrs that were not set: those of overlay file systems, of security
	// modules, and without root file capabilities.
	Xattrs int `json:"xattrs,omitempty"`
}

// Config says how commands in an image run, in the words of the OCI image
// specification, section "Image Configuration". Sandboxes run the entrypoint with
// a command that waits, and never Cmd.
type Config struct {
	Env        []string          // KEY=VALUE
	User       string            // empty means root
	Workdir    string            // empty means "/"
	Entrypoint []string          // runs beside the commands
	Cmd        []string          // not run
	Shell      []string          // a Dockerfile's SHELL, empty means /bin/sh -c
	Labels     map[string]string // nil when there are none
}

// record is how the store keeps an image: images/<hex of the ID>.json. Config
// are the exact bytes that the ID is the digest of.
type record struct {
	Digest string   `json:"digest,omitempty"`
	Layers []string `json:"layers"` // keys of the store's layers, lowest first
	Config []byte   `json:"config"`
}

func configOf(file *v1.ConfigFile) Config {
	c := file.Config
	return Config{
		Env:        slices.Clone(c.Env),
		User:       c.User,
		Workdir:    c.WorkingDir,
		Entrypoint: slices.Clone(c.Entrypoint),
		Cmd:        slices.Clone(c.Cmd),
		Shell:      slices.Clone(c.Shell),
		Labels:     c.Labels,
	}
}
