// Package imagetest makes layers for tests, and describes what was made of them.
package imagetest

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"
)

// Entry is one entry of a layer made for a test.
type Entry struct {
	tar.Header
	Content string
}

// File is a regular file of mode 644.
func File(name, content string) Entry {
	return Entry{Header: tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644}, Content: content}
}

// Dir is a directory.
func Dir(name string, mode int64) Entry {
	return Entry{Header: tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode}, Content: ""}
}

// Symlink is a symbolic link.
func Symlink(name, target string) Entry {
	return Entry{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}, Content: ""}
}

// Hardlink is another name of an earlier entry.
func Hardlink(name, target string) Entry {
	return Entry{Header: tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target, Mode: 0o644}, Content: ""}
}

// Whiteout is an entry with a name that has a meaning in layers.
func Whiteout(name string) Entry { return File(name, "") }

// LayerTar is the tar of a layer.
func LayerTar(t testing.TB, entries ...Entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for _, e := range entries {
		hdr := e.Header
		hdr.Size = int64(len(e.Content))
		if hdr.ModTime.IsZero() {
			hdr.ModTime = time.Unix(1_600_000_000, 0)
		}
		if err := tw.WriteHeader(&hdr); err != nil {
			t.Fatalf("writing header %q: %v", hdr.Name, err)
		}
		if _, err := io.WriteString(tw, e.Content); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// BenchmarkLayer resembles a distribution's: many small files, some large,
// compressible by about three.
func BenchmarkLayer(b *testing.B) []byte {
	b.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	var entries []Entry
	for d := range 100 {
		name := fmt.Sprintf("usr/share/doc/package-%d", d)
		entries = append(entries, Dir(name, 0o755))
		for f := range 40 {
			entries = append(entries, File(fmt.Sprintf("%s/file-%d", name, f), Text(rng, 6000)))
		}
		entries = append(entries, Symlink(name+"/link", "file-0"))
	}
	for f := range 8 {
		entries = append(entries, File(fmt.Sprintf("usr/lib/lib%d.so", f), Text(rng, 5<<20)))
	}
	return LayerTar(b, entries...)
}

// Text is words and numbers, compressible by about three.
func Text(rng *rand.Rand, size int) string {
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
