//go:build linux

package image_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/proctor-run/proctor/sandbox/oci/image"
)

// An image of a local layout becomes directories for an overlay mount, without
// any registry being asked.
func Example() {
	dir, err := os.MkdirTemp("", "image-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	mirror := filepath.Join(dir, "mirror")
	if err := writeMirror(mirror, "debian:12"); err != nil {
		log.Fatal(err)
	}

	store, err := image.Open(filepath.Join(dir, "store"), image.Options{Mirrors: []string{mirror}, Offline: true})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	img, err := store.Pull(context.Background(), "debian:12", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(img.Ref, len(img.Dirs()), filepath.Base(img.Dirs()[0]))
	// Output: debian:12 1 diff
}

func writeMirror(dir, name string) error {
	layer, err := random.Layer(100, types.OCILayer)
	if err != nil {
		return err
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	return path.AppendImage(img, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": name}))
}
