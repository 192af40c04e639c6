package image

import (
	"slices"
	"testing"
)

func TestSetEnv(t *testing.T) {
	t.Parallel()
	base := []string{"PATH=/bin", "A=1", "ODD"}
	got := setEnv(base, []string{"A=2", "B=x=y", "ODD=even", "B="})
	if want := []string{"PATH=/bin", "A=2", "ODD=even", "B="}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !slices.Equal(base, []string{"PATH=/bin", "A=1", "ODD"}) {
		t.Errorf("the base became %q", base)
	}
}

func TestDirsOfRepeatedLayers(t *testing.T) {
	t.Parallel()
	img := Image{Layers: []Layer{{Dir: "a"}, {Dir: "empty"}, {Dir: "b"}, {Dir: "empty"}, {Dir: "c"}}}
	if got, want := img.Dirs(), []string{"c", "empty", "b", "a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
