package image

import (
	"slices"
	"testing"
)

func TestDirsOfRepeatedLayers(t *testing.T) {
	t.Parallel()
	img := Image{Layers: []Layer{{Dir: "a"}, {Dir: "empty"}, {Dir: "b"}, {Dir: "empty"}, {Dir: "c"}}}
	if got, want := img.Dirs(), []string{"c", "empty", "b", "a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
