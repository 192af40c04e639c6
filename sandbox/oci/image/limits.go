package image

import "cmp"

// Limits bound what a layer may be. A zero field means its default.
type Limits struct {
	// Entries in a layer, directories made for them included.
	Entries int
	// Bytes of a layer, uncompressed. Holes in sparse files count.
	Bytes int64
	// Depth of a path: its number of components.
	Depth int
}

// The defaults of Limits. The largest public images have layers of a few
// hundred thousand entries and some ten GiB.
const (
	DefaultMaxEntries = 2 << 20
	DefaultMaxBytes   = 64 << 30
	defaultMaxDepth   = 256
)

// Bounds that are not a matter of taste.
const (
	maxPath      = 4095     // PATH_MAX without the final zero, names and link targets
	maxComponent = 255      // NAME_MAX of every common file system
	maxXattr     = 64 << 10 // XATTR_SIZE_MAX
	maxManifest  = 4 << 20  // what registries accept at most
	maxConfig    = 8 << 20
	maxLayers    = 500 // OVL_MAX_STACK of the Linux kernel
	maxLinks     = 255 // symbolic links followed on one path
	maxNesting   = 4   // indexes in indexes
	maxWindow    = 128 << 20
)

func (l Limits) withDefaults() Limits {
	return Limits{
		Entries: cmp.Or(l.Entries, DefaultMaxEntries),
		Bytes:   cmp.Or(l.Bytes, DefaultMaxBytes),
		Depth:   cmp.Or(l.Depth, defaultMaxDepth),
	}
}
