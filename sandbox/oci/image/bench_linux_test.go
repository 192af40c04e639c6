package image

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/compression"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/imagetest"
)

// BenchmarkPull is everything from an OCI layout to a published layer:
// decompressing, verifying twice, unpacking, writing to disk.
func BenchmarkPull(b *testing.B) {
	raw := imagetest.BenchmarkLayer(b)
	for _, c := range []compression.Compression{compression.GZip, compression.ZStd} {
		b.Run(string(c), func(b *testing.B) {
			layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil },
				tarball.WithCompression(c), tarball.WithMediaType(types.OCILayer))
			if err != nil {
				b.Fatal(err)
			}
			img, err := mutate.AppendLayers(empty.Image, layer)
			if err != nil {
				b.Fatal(err)
			}
			ref := "oci:" + writeLayout(b, map[string]v1.Image{"x": img})
			top := b.TempDir()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				s, err := Open(filepath.Join(top, "store"), Options{})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.Pull(b.Context(), ref, nil); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				if err := os.RemoveAll(filepath.Join(top, "store")); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// BenchmarkResolve is what a trial costs when its image is there already.
func BenchmarkResolve(b *testing.B) {
	mirror := writeLayout(b, map[string]v1.Image{"debian:12": sample(b)})
	s := openStore(b, b.TempDir(), Options{Mirrors: []string{mirror}, Offline: true})
	mustPull(b, s, "debian:12")
	for b.Loop() {
		if _, err := s.Resolve(b.Context(), "debian:12"); err != nil {
			b.Fatal(err)
		}
	}
}
