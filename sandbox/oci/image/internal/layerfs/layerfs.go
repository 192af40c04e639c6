// Package layerfs turns the tar of a layer into files that an overlay can be mounted
// on, and such files into the tar of a layer.
//
// Unpacking never touches anything outside the layer's own directory, and its use of
// space and inodes is bounded by [Limits]. Whiteouts are character devices 0/0,
// opaque directories carry an extended attribute whose name the [Format] says.
package layerfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Format says under which names overlay's attributes are kept.
type Format string

// The formats.
const (
	Trusted Format = "trusted" // by root, for ordinary overlay mounts
	User    Format = "user"    // by anyone, for mounts with userxattr
)

// Limits bound what a layer may be.
type Limits struct {
	// Entries in a layer, directories made for them included.
	Entries int
	// Bytes of a layer, uncompressed. Holes in sparse files count.
	Bytes int64
	// Depth of a path: its number of components.
	Depth int
}

// Bounds that are not a matter of taste.
const (
	// MaxLayers is OVL_MAX_STACK of the Linux kernel.
	MaxLayers = 500

	maxPath      = 4095     // PATH_MAX without the final zero, names and link targets
	maxComponent = 255      // NAME_MAX of every common file system
	maxXattr     = 64 << 10 // XATTR_SIZE_MAX
	maxLinks     = 255      // symbolic links followed on one path
)

// Found is what unpacking finds out about a layer.
type Found struct {
	// OpaqueRoot: the layer hides all below it. Overlay knows no opaque root,
	// so an image leaves out what lies below.
	OpaqueRoot bool
	// Implicit are the directories that the layer has no entries for, only
	// something inside; parents before children.
	Implicit []string
	Notes    Notes
}

// Notes counts what unpacking or packing a layer did or could not keep.
type Notes struct {
	Entries int
	Bytes   int64 // of file content
	// ForeignOwners: entries whose owner could not be set.
	ForeignOwners int
	// Devices that were not created.
	Devices int
	// Xattrs that were not set.
	Xattrs int
}

// Directory is a directory of a synthetic layer, which holds nothing but these.
type Directory struct {
	Path  string `json:"path"`
	Mode  uint32 `json:"mode"`
	UID   int    `json:"uid"`
	GID   int    `json:"gid"`
	Mtime int64  `json:"mtime"` // nanoseconds
}

// EntryError says which entry of a layer cannot be unpacked. The layer is not
// used.
type EntryError struct {
	Entry string // name in the tar, shortened
	Err   error
}

func (e *EntryError) Error() string {
	return fmt.Sprintf("unpacking %q: %v", e.Entry, e.Err)
}

func (e *EntryError) Unwrap() error { return e.Err }

// RemoveTree removes a directory also when directories in it forbid it to an
// ordinary user.
func RemoveTree(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	walk := func(path string, d fs.DirEntry, _ error) error {
		if d == nil || !d.IsDir() {
			return nil
		}
		// WalkDir reads the directory after this call, and again reports
		// what it cannot read; RemoveAll has the last word.
		_ = os.Chmod(path, 0o700)
		return nil
	}
	if err := filepath.WalkDir(dir, walk); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
