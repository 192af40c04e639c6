package layerfs

import (
	"archive/tar"
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/imagetest"
)

// FuzzUnpack: whatever the bytes are, nothing beside the layer changes.
func FuzzUnpack(f *testing.F) {
	f.Add(layerTar(f, dir("a", 0o755), file("a/b", "x"), symlink("s", "../canary"), hardlink("h", "a/b"), whiteout("a/.wh.c")))
	f.Add(layerTar(f, symlink("s", ".."), file("s/canary", "x"), whiteout(".wh..wh..opq"), dir("s", 0o700)))
	f.Add(layerTar(f, whiteout(".wh.d"), file("d/x", "x"), file("d", "y")))
	f.Add(sparseTar(f, map[string]string{"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.name": "s", "GNU.sparse.size": "100", "GNU.sparse.numblocks": "1", "GNU.sparse.map": "50,4"}, "data"))
	limits := Limits{Entries: 200, Bytes: 1 << 20, Depth: 20}
	f.Fuzz(func(t *testing.T, raw []byte) {
		root, info, err := unpackIn(t, raw, limits)
		if err == nil && info.Notes.Entries > limits.Entries {
			t.Errorf("%d entries, at most %d", info.Notes.Entries, limits.Entries)
		}
		if err := RemoveTree(root); err != nil {
			t.Error(err)
		}
		if err := os.Mkdir(root, 0o700); err != nil {
			t.Error(err)
		}
	})
}

// FuzzEntries drives the unpacker with well-formed entries of hostile names,
// which random bytes rarely are.
func FuzzEntries(f *testing.F) {
	f.Add("5:a\n0:a/b\n2:s>..\n0:s/canary\n1:h>a/b\n0:a/.wh.b\n")
	f.Add("2:a>b\n2:b>/\n0:a/c/d\n5:a\n1:x>b/c/d\n0:c/.wh..wh..opq\n")
	types := "0123567"
	f.Fuzz(func(t *testing.T, script string) {
		var entries []entry
		for line := range strings.SplitSeq(script, "\n") {
			kind, rest, ok := strings.Cut(line, ":")
			name, target, _ := strings.Cut(rest, ">")
			if !ok || len(kind) != 1 || !strings.Contains(types, kind) || len(entries) > 30 {
				continue
			}
			hdr := tar.Header{Typeflag: kind[0], Name: name, Linkname: target, Mode: 0o755}
			if tar.NewWriter(&bytes.Buffer{}).WriteHeader(&hdr) != nil {
				continue
			}
			entries = append(entries, entry{Header: hdr, Content: ""})
		}
		root, _, err := unpackIn(t, layerTar(t, entries...), Limits{Entries: 200, Depth: 20})
		if err == nil {
			imagetest.Listing(t, root)
		}
	})
}
