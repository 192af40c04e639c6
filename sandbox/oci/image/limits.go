package image

import (
	"cmp"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/layerfs"
)

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

// withDefaults are the limits of a store.
func (l Limits) withDefaults() layerfs.Limits {
	return layerfs.Limits{
		Entries: cmp.Or(l.Entries, DefaultMaxEntries),
		Bytes:   cmp.Or(l.Bytes, DefaultMaxBytes),
		Depth:   cmp.Or(l.Depth, defaultMaxDepth),
	}
}
