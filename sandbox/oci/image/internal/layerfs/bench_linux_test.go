package layerfs

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/imagetest"
)

// BenchmarkUnpack is the unpacker alone; MB/s are of the uncompressed layer.
func BenchmarkUnpack(b *testing.B) {
	raw := imagetest.BenchmarkLayer(b)
	top := b.TempDir()
	f := testFormat(b)
	limits := orDefaults(Limits{})
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		root := filepath.Join(top, "layer")
		if err := os.Mkdir(root, 0o700); err != nil {
			b.Fatal(err)
		}
		if _, err := Unpack(b.Context(), root, bytes.NewReader(raw), f, limits); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := os.RemoveAll(root); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
