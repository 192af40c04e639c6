package layerfs

import "github.com/proctor-run/proctor/sandbox/oci/image/internal/imagetest"

// The entries of layers, by shorter names.
type entry = imagetest.Entry

var (
	file, dir, symlink, hardlink, whiteout = imagetest.File, imagetest.Dir, imagetest.Symlink, imagetest.Hardlink, imagetest.Whiteout

	layerTar = imagetest.LayerTar
)
