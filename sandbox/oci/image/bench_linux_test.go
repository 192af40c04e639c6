package image

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/compression"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// benchmarkLayer resembles a distribution's: many small files, some large,
// compressible by about three.
func benchmarkLayer(b *testing.B) []byte {
	b.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	var entries []entry
	for d := range 100 {
		name := fmt.Sprintf("usr/share/doc/package-%d", d)
		entries = append(entries, dir(name, 0o755))
		for f := range 40 {
			entries = append(entries, file(fmt.Sprintf("%s/file-%d", name, f), text(rng, 6000)))
		}
		entries = append(entries, symlink(name+"/link", "file-0"))
	}
	for f := range 8 {
		entries = append(entries, file(fmt.Sprintf("usr/lib/lib%d.so", f), text(rng, 5<<20)))
	}
	return layerTar(b, entries...)
}

func text(rng *rand.Rand, size int) string {
	words := []string{"sandbox", "layer", "overlay", "task", "the ", "of ", "\n", "and "}
	var buf bytes.Buffer
	for buf.Len() < size {
		buf.WriteString(words[rng.IntN(len(words))])
		if rng.IntN(3) == 0 {
			fmt.Fprintf(&buf, "%x", rng.Uint32())
		}
	}
	return buf.String()
}

// BenchmarkUnpack is the unpacker alone; MB/s are of the uncompressed layer.
func BenchmarkUnpack(b *testing.B) {
	raw := benchmarkLayer(b)
	top := b.TempDir()
	f := testFormat(b)
	limits := Limits{}.withDefaults()
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		root := filepath.Join(top, "layer")
		if err := os.Mkdir(root, 0o700); err != nil {
			b.Fatal(err)
		}
		if _, err := unpack(b.Context(), root, bytes.NewReader(raw), f, limits); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := os.RemoveAll(root); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkPull is everything from an OCI layout to a published layer:
// decompressing, verifying twice, unpacking, writing to disk.
func BenchmarkPull(b *testing.B) {
	raw := benchmarkLayer(b)
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
