package image

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
)

func TestWrongDiffID(t *testing.T) {
	t.Parallel()
	img := imageOf(t, v1.Config{}, layerTar(t, file("a", "x")))
	cfg, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	cfg = cfg.DeepCopy()
	cfg.RootFS.DiffIDs[0].Hex = strings.Repeat("0", 64)
	forged, err := mutate.ConfigFile(img, cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := openStore(t, t.TempDir(), Options{})
	_, err = s.Pull(t.Context(), "oci:"+writeLayout(t, map[string]v1.Image{"x": forged}), nil)
	wantError[*blob.DigestError](t, err)
	assertNoLeftovers(t, s)
}

func TestDamagedLayout(t *testing.T) {
	t.Parallel()
	img := bigImage(t)
	raw := layerBytes(t, img)
	for _, tc := range []struct {
		name string
		blob []byte
	}{
		{"truncated", raw[:len(raw)/2]},
		{"changed", flipped(raw)},
		{"longer", append(bytes.Clone(raw), 0)},
		{"empty", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := writeLayout(t, map[string]v1.Image{"x": img})
			path := filepath.Join(dir, "blobs", "sha256", strings.TrimPrefix(blob.DigestOf(raw), "sha256:"))
			if err := os.WriteFile(path, tc.blob, 0o600); err != nil {
				t.Fatal(err)
			}
			s := openStore(t, t.TempDir(), Options{})
			_, err := s.Pull(t.Context(), "oci:"+dir, nil)
			wantError[*blob.DigestError](t, err)
			assertNoLeftovers(t, s)
		})
	}
}

func TestBombs(t *testing.T) {
	t.Parallel()
	img := imageOf(t, v1.Config{}, layerTar(t, file("zeros", strings.Repeat("\x00", 1<<20))))
	ref := "oci:" + writeLayout(t, map[string]v1.Image{"x": img})
	s := openStore(t, t.TempDir(), Options{Limits: Limits{Bytes: 1 << 19}})
	if _, err := s.Pull(t.Context(), ref, nil); !errors.Is(err, ErrLimit) {
		t.Errorf("got %v, want %v", err, ErrLimit)
	}
	assertNoLeftovers(t, s)

	// What follows the end of the archive counts too.
	tail := append(layerTar(t, file("a", "x")), make([]byte, 1<<20)...)
	img = imageOf(t, v1.Config{}, tail)
	ref = "oci:" + writeLayout(t, map[string]v1.Image{"x": img})
	if _, err := s.Pull(t.Context(), ref, nil); !errors.Is(err, ErrLimit) {
		t.Errorf("behind the end: got %v, want %v", err, ErrLimit)
	}
	if _, err := openStore(t, t.TempDir(), Options{}).Pull(t.Context(), ref, nil); err != nil {
		t.Errorf("padding is no error: %v", err)
	}
}
