package image

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/source"
)

// TestSharedLayerOutlivesItsSource: two pulls share the work on a layer, and the
// one that gave it its source leaves, or has a damaged source. The other pull
// goes on with its own.
func TestSharedLayerOutlivesItsSource(t *testing.T) {
	t.Parallel()
	shared := layerTar(t, file("shared", "x"))
	first := imageOf(t, v1.Config{}, shared)
	second := imageOf(t, v1.Config{}, shared, layerTar(t, file("second", "y")))
	layouts := writeLayout(t, map[string]v1.Image{"first": first, "second": second})
	archives := saveArchive(t, map[string]v1.Image{"first": first, "second": second})
	damaged := writeLayout(t, map[string]v1.Image{"first": first})
	damageLayers(t, damaged, first)
	for _, tc := range []struct {
		name, first, second string
		leave               bool
	}{
		{"layout", "oci:" + layouts + ":first", "oci:" + layouts + ":second", true},
		{"archive", "docker-archive:" + archives + ":first", "docker-archive:" + archives + ":second", true},
		{"damaged", "oci:" + damaged, "docker-archive:" + archives + ":second", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := openStore(t, t.TempDir(), Options{})
			release := holdSlots(s)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			one := goPull(ctx, s, tc.first)
			awaitLayer(t, s, first, 1)
			two := goPull(t.Context(), s, tc.second)
			awaitLayer(t, s, first, 2)
			if tc.leave {
				leave()
			} else {
				release()
			}
			if err := <-one; err == nil {
				t.Error("the first pull succeeds")
			}
			if tc.leave {
				release()
			}
			if err := <-two; err != nil {
				t.Errorf("the second pull: %v", err)
			}
		})
	}
}

func goPull(ctx context.Context, s *Store, ref string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := s.Pull(ctx, ref, nil)
		done <- err
	}()
	return done
}

// holdSlots keeps every layer from being unpacked until release.
func holdSlots(s *Store) (release func()) {
	for range cap(s.layers.slots) {
		s.layers.slots <- struct{}{}
	}
	return func() {
		for range cap(s.layers.slots) {
			<-s.layers.slots
		}
	}
}

// awaitLayer returns when n pulls wait for the first layer of an image.
func awaitLayer(t *testing.T, s *Store, img v1.Image, n int) {
	t.Helper()
	cfg, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	key := fileKey(cfg.RootFS.DiffIDs[0].String())
	waiting := func() int {
		s.layers.flights.mu.Lock()
		defer s.layers.flights.mu.Unlock()
		if c := s.layers.flights.calls[key]; c != nil {
			return c.waiting
		}
		return 0
	}
	for end := time.Now().Add(time.Minute); waiting() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d pulls wait for the layer, want %d", waiting(), n)
		}
	}
}

// damageLayers makes the layers of an image in a layout other than their digests.
func damageLayers(t *testing.T, layout string, img v1.Image) {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		digest, err := l.Digest()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(layout, filepath.FromSlash(source.BlobPath(digest)))
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)/2] ^= 1
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
