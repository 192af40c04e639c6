package layerfs

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/imagetest"
)

// testFormat is the one that this process can use.
func testFormat(t testing.TB) Format { return ProbeFormat(t.TempDir()) }

// orDefaults has bounds for what a test does not bound.
func orDefaults(l Limits) Limits {
	for field, most := range map[*int]int{&l.Entries: 1 << 20, &l.Depth: 256} {
		if *field == 0 {
			*field = most
		}
	}
	if l.Bytes == 0 {
		l.Bytes = 64 << 30
	}
	return l
}

// unpackIn unpacks into layer below a directory that also holds a file that
// nobody may touch.
func unpackIn(t testing.TB, raw []byte, limits Limits) (dir string, info Found, err error) {
	t.Helper()
	top := t.TempDir()
	dir = filepath.Join(top, "layer")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	canary := filepath.Join(top, "canary")
	if err := os.WriteFile(canary, []byte("untouched"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := RemoveTree(dir); err != nil {
			t.Error(err)
		}
	})
	before := imagetest.Describe(t, canary)
	info, err = Unpack(t.Context(), dir, bytes.NewReader(raw), testFormat(t), orDefaults(limits))
	if after := imagetest.Describe(t, canary); after != before {
		t.Errorf("the file beside the layer was %q, is %q", before, after)
	}
	if entries, err := os.ReadDir(top); err != nil || len(entries) != 2 {
		t.Errorf("beside the layer there is %v (%v), expected nothing new", entries, err)
	}
	return dir, info, err
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	fifo := entry{Header: tar.Header{Typeflag: tar.TypeFifo, Name: "pipe", Mode: 0o622}, Content: ""}
	null := entry{Header: tar.Header{Typeflag: tar.TypeChar, Name: "dev/null", Devmajor: 1, Devminor: 3, Mode: 0o666}, Content: ""}
	forged := entry{Header: tar.Header{Typeflag: tar.TypeChar, Name: "forged", Mode: 0o666}, Content: ""}
	for _, tc := range []struct {
		name     string
		entries  []entry
		want     map[string]string
		implicit []string
		opaque   bool
		devices  int
	}{
		{name: "empty", want: map[string]string{}},
		{
			name:    "plain",
			entries: []entry{dir("etc/", 0o755), file("etc/passwd", "root"), symlink("bin", "usr/bin"), fifo},
			want:    map[string]string{"etc": "dir 755", "etc/passwd": "file 644 root", "bin": "link usr/bin", "pipe": "fifo 622"},
		},
		{
			name:    "modes of directories, also closed ones",
			entries: []entry{dir("a", 0o555), dir("a/b", 0o1777), file("a/b/c", "x"), dir("a/d", 0o2750)},
			want:    map[string]string{"a": "dir 555", "a/b": "dir 1777", "a/b/c": "file 644 x", "a/d": "dir 2750"},
		},
		{
			name:    "setuid",
			entries: []entry{{Header: tar.Header{Typeflag: tar.TypeReg, Name: "su", Mode: 0o4755}, Content: "x"}},
			want:    map[string]string{"su": "file 4755 x"},
		},
		{
			name:     "implicit parents",
			entries:  []entry{file("a/b/c", "x"), dir("a", 0o700)},
			want:     map[string]string{"a": "dir 700", "a/b": "dir 755", "a/b/c": "file 644 x"},
			implicit: []string{"a/b"},
		},
		{
			name:    "absolute and dotted names",
			entries: []entry{file("/abs", "1"), file("./dot", "2"), dir("./", 0o755), file("x/../flat", "3"), file("//two", "4")},
			want:    map[string]string{"abs": "file 644 1", "dot": "file 644 2", "flat": "file 644 3", "two": "file 644 4"},
		},
		{
			name:    "hard links",
			entries: []entry{file("a", "x"), hardlink("b", "a"), hardlink("c", "/b"), symlink("s", "a"), hardlink("hs", "s")},
			want:    map[string]string{"a": "file 644 x", "b": "file 644 x", "c": "file 644 x", "s": "link a", "hs": "link a"},
		},
		{
			name:    "hard link to itself",
			entries: []entry{file("a", "x"), hardlink("a", "./a")},
			want:    map[string]string{"a": "file 644 x"},
		},
		{
			name:    "parents through links stay inside",
			entries: []entry{dir("usr", 0o755), dir("usr/lib", 0o755), symlink("lib", "usr/lib"), file("lib/a.so", "1"), symlink("abs", "/usr"), file("abs/lib/b.so", "2")},
			want: map[string]string{
				"usr": "dir 755", "usr/lib": "dir 755", "lib": "link usr/lib", "abs": "link /usr",
				"usr/lib/a.so": "file 644 1", "usr/lib/b.so": "file 644 2",
			},
		},
		{
			name:    "whiteouts",
			entries: []entry{dir("a", 0o755), whiteout("a/.wh.gone"), whiteout(".wh.top"), dir("o", 0o755), file("o/new", "x"), whiteout("o/.wh..wh..opq")},
			want:    map[string]string{"a": "dir 755", "a/gone": "whiteout", "top": "whiteout", "o": "dir 755 opaque", "o/new": "file 644 x"},
		},
		{
			name:     "whiteout in a directory without entry",
			entries:  []entry{whiteout("a/b/.wh.c")},
			want:     map[string]string{"a": "dir 755", "a/b": "dir 755", "a/b/c": "whiteout"},
			implicit: []string{"a", "a/b"},
		},
		{
			name:    "whiteout hides only lower layers, before",
			entries: []entry{whiteout(".wh.f"), file("f", "new"), whiteout(".wh.d"), dir("d", 0o755), whiteout(".wh.l"), symlink("l", "f")},
			want:    map[string]string{"f": "file 644 new", "d": "dir 755 opaque", "l": "link f"},
		},
		{
			name:    "whiteout hides only lower layers, after",
			entries: []entry{file("f", "new"), whiteout(".wh.f"), dir("d", 0o755), file("d/x", "x"), whiteout(".wh.d")},
			want:    map[string]string{"f": "file 644 new", "d": "dir 755 opaque", "d/x": "file 644 x"},
		},
		{
			name:     "file below a whiteout",
			entries:  []entry{whiteout(".wh.d"), file("d/x", "x")},
			want:     map[string]string{"d": "dir 755 opaque", "d/x": "file 644 x"},
			implicit: []string{"d"},
		},
		{
			name:    "opaque root",
			entries: []entry{whiteout(".wh..wh..opq"), file("a", "x")},
			want:    map[string]string{"a": "file 644 x"},
			opaque:  true,
		},
		{
			name:    "AUFS metadata",
			entries: []entry{dir(".wh..wh.plnk", 0o700), file(".wh..wh.aufs", ""), file("a", "x")},
			want:    map[string]string{"a": "file 644 x"},
		},
		{
			name:    "devices are left out",
			entries: []entry{dir("dev", 0o755), null, hardlink("dev/zero", "dev/null"), hardlink("dev/zero2", "dev/zero"), forged},
			want:    map[string]string{"dev": "dir 755"},
			devices: 4,
		},
		{
			name:    "file after a device of the name",
			entries: []entry{dir("dev", 0o755), null, file("dev/null", "x"), hardlink("copy", "dev/null")},
			want:    map[string]string{"dev": "dir 755", "dev/null": "file 644 x", "copy": "file 644 x"},
			devices: 1,
		},
		{
			name:    "duplicates: the last one counts",
			entries: []entry{file("a", "1"), file("a", "2"), symlink("l", "x"), symlink("l", "y"), dir("d", 0o700), file("d/x", "x"), dir("d", 0o755)},
			want:    map[string]string{"a": "file 644 2", "l": "link y", "d": "dir 755", "d/x": "file 644 x"},
		},
		{
			name:    "file over directory",
			entries: []entry{dir("d", 0o755), dir("d/e", 0o755), file("d/e/x", "x"), whiteout("d/.wh.w"), file("d", "now a file")},
			want:    map[string]string{"d": "file 644 now a file"},
		},
		{
			name:     "directory over file, over link",
			entries:  []entry{file("f", "x"), dir("f", 0o755), symlink("l", "/etc"), dir("l", 0o755), file("l/passwd", "x"), symlink("e", "/"), dir("e", 0o755), file("e/i/x", "")},
			want:     map[string]string{"f": "dir 755", "l": "dir 755", "l/passwd": "file 644 x", "e": "dir 755", "e/i": "dir 755", "e/i/x": "file 644 "},
			implicit: []string{"e/i"},
		},
		{
			name:     "directory, file, directory",
			entries:  []entry{file("d/x", "x"), file("d", "f"), file("g", ""), dir("d", 0o750), file("d/y", "y"), file("d/z/y", "y")},
			want:     map[string]string{"d": "dir 750", "d/y": "file 644 y", "d/z": "dir 755", "d/z/y": "file 644 y", "g": "file 644 "},
			implicit: []string{"d/z"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			root, info, err := unpackIn(t, layerTar(t, tc.entries...), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, imagetest.Listing(t, root)); diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.implicit, info.Implicit); diff != "" {
				t.Errorf("implicit directories (-want +got):\n%s", diff)
			}
			if info.OpaqueRoot != tc.opaque {
				t.Errorf("opaque root is %t, want %t", info.OpaqueRoot, tc.opaque)
			}
			if info.Notes.Devices != tc.devices {
				t.Errorf("%d devices noted, want %d", info.Notes.Devices, tc.devices)
			}
		})
	}
}

// TestUnpackHostile holds one attack per case: each is refused, and nothing
// outside of the layer changes (unpackIn looks).
func TestUnpackHostile(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 256)
	deep := strings.Repeat("d/", 300)
	nobody := int64(1<<32 - 1) // (uid_t)-1, which chown takes for "leave it"
	links := []entry{}
	for i := range 300 {
		links = append(links, symlink(fmt.Sprintf("l%d", i), fmt.Sprintf("l%d", i+1)))
	}
	for _, tc := range []struct {
		name    string
		entries []entry
		limits  Limits
		want    error
	}{
		{name: "dotdot", entries: []entry{file("../canary", "x")}, want: errUnsafe},
		{name: "dotdot inside", entries: []entry{file("a/../../canary", "x")}, want: errUnsafe},
		{name: "dotdot absolute", entries: []entry{file("/../canary", "x")}, want: errUnsafe},
		{name: "dotdot directory", entries: []entry{dir("..", 0o777)}, want: errUnsafe},
		{name: "dotdot symlink name", entries: []entry{symlink("../canary", "x")}, want: errUnsafe},
		{name: "hardlink out", entries: []entry{hardlink("a", "../canary")}, want: errUnsafe},
		{name: "hardlink out absolute", entries: []entry{hardlink("a", "/../canary")}, want: errUnsafe},
		{name: "hardlink to host file", entries: []entry{hardlink("a", "/etc/passwd")}, want: blob.ErrMalformed},
		{name: "hardlink through symlink", entries: []entry{symlink("s", ".."), hardlink("a", "s/canary")}, want: blob.ErrMalformed},
		{name: "hardlink through absolute symlink", entries: []entry{symlink("s", "/etc"), hardlink("a", "s/passwd")}, want: blob.ErrMalformed},
		{name: "hardlink to directory", entries: []entry{dir("d", 0o755), hardlink("a", "d")}, want: blob.ErrMalformed},
		{name: "hardlink to root", entries: []entry{hardlink("a", "/")}, want: blob.ErrMalformed},
		{name: "hardlink to whiteout", entries: []entry{whiteout(".wh.w"), hardlink("a", "w")}, want: blob.ErrMalformed},
		{name: "hardlink to later entry", entries: []entry{hardlink("a", "b"), file("b", "x")}, want: blob.ErrMalformed},
		{name: "whiteout of dotdot", entries: []entry{whiteout(".wh...")}, want: errUnsafe},
		{name: "whiteout of dot", entries: []entry{whiteout(".wh..")}, want: errUnsafe},
		{name: "whiteout of nothing", entries: []entry{whiteout(".wh.")}, want: errUnsafe},
		{name: "whiteout outside", entries: []entry{whiteout("../.wh.canary")}, want: errUnsafe},
		{name: "parent is a file", entries: []entry{file("f", "x"), file("f/x", "x")}, want: blob.ErrMalformed},
		{name: "parent is a pipe", entries: []entry{{Header: tar.Header{Typeflag: tar.TypeFifo, Name: "p"}}, file("p/x", "x")}, want: blob.ErrMalformed},
		{name: "symlink to itself as parent", entries: []entry{symlink("s", "s"), file("s/x", "x")}, want: blob.ErrMalformed},
		{name: "symlink ring as parent", entries: []entry{symlink("a", "b"), symlink("b", "a"), file("a/x", "x")}, want: blob.ErrMalformed},
		{name: "symlink chain as parent", entries: append(links, file("l0/x", "x")), want: blob.ErrMalformed},
		{name: "symlink growing as parent", entries: []entry{symlink("g", strings.Repeat("g/", 1000)+"x"), file("g/x", "x")}, want: blob.ErrLimit},
		{name: "symlink to nothing", entries: []entry{symlink("s", "")}, want: blob.ErrMalformed},
		{name: "symlink to a very long name", entries: []entry{symlink("s", strings.Repeat("x", 5000))}, want: blob.ErrLimit},
		{name: "root as file", entries: []entry{file(".", "")}, want: blob.ErrMalformed},
		{name: "root as symlink", entries: []entry{symlink(".", "/etc")}, want: blob.ErrMalformed},
		{name: "long component", entries: []entry{file(long, "x")}, want: blob.ErrLimit},
		{name: "long name", entries: []entry{file(strings.Repeat("a/", 2100)+"x", "x")}, want: blob.ErrLimit},
		{name: "deep name", entries: []entry{file(deep+"x", "x")}, want: blob.ErrLimit},
		{name: "too many entries", entries: []entry{file("a", ""), file("b", ""), file("c", "")}, limits: Limits{Entries: 2}, want: blob.ErrLimit},
		{name: "too many implicit directories", entries: []entry{file("a/b/c/d", "")}, limits: Limits{Entries: 3}, want: blob.ErrLimit},
		{name: "too large", entries: []entry{file("a", "12345")}, limits: Limits{Bytes: 4}, want: blob.ErrLimit},
		{name: "too large in sum", entries: []entry{file("a", "123"), file("b", "45")}, limits: Limits{Bytes: 4}, want: blob.ErrLimit},
		{name: "owner beyond 32 bits", entries: []entry{{Header: tar.Header{Typeflag: tar.TypeReg, Name: "a", Uid: int(nobody)}}}, want: blob.ErrMalformed},
		{name: "unknown type", entries: []entry{{Header: tar.Header{Typeflag: 'V', Name: "a"}}}, want: blob.ErrMalformed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := unpackIn(t, layerTar(t, tc.entries...), tc.limits)
			if !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			var le *EntryError
			if !errors.As(err, &le) || le.Entry == "" {
				t.Errorf("got %v, want a *LayerError that names the entry", err)
			}
		})
	}
}

// TestUnpackContained holds attacks that end inside of the layer, where they
// do no harm.
func TestUnpackContained(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		entries []entry
		want    map[string]string
	}{
		{
			name:    "symlink parent",
			entries: []entry{symlink("evil", ".."), file("evil/canary", "x")},
			want:    map[string]string{"evil": "link ..", "canary": "file 644 x"},
		},
		{
			name:    "symlink parent absolute",
			entries: []entry{symlink("evil", "/etc"), file("evil/passwd", "x")},
			want:    map[string]string{"evil": "link /etc", "etc": "dir 755", "etc/passwd": "file 644 x"},
		},
		{
			name:    "symlink parent deep dotdot",
			entries: []entry{dir("a", 0o755), symlink("a/evil", "../../../.."), file("a/evil/canary", "x")},
			want:    map[string]string{"a": "dir 755", "a/evil": "link ../../../..", "canary": "file 644 x"},
		},
		{
			name:    "file over symlink out",
			entries: []entry{symlink("evil", "../canary"), file("evil", "x")},
			want:    map[string]string{"evil": "file 644 x"},
		},
		{
			name:    "mode of symlink out",
			entries: []entry{{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: "evil", Linkname: "../canary", Mode: 0o4777, Uid: 1}}},
			want:    map[string]string{"evil": "link ../canary"},
		},
		{
			name:    "whiteout through symlink",
			entries: []entry{symlink("evil", ".."), whiteout("evil/.wh.canary")},
			want:    map[string]string{"evil": "link ..", "canary": "whiteout"},
		},
		{
			name:    "opaque through symlink",
			entries: []entry{dir("d", 0o755), symlink("evil", "/d"), whiteout("evil/.wh..wh..opq")},
			want:    map[string]string{"d": "dir 755 opaque", "evil": "link /d"},
		},
		{
			name:    "directory replaced by symlink between entries",
			entries: []entry{dir("d", 0o755), file("d/a", "1"), symlink("d", ".."), file("d/canary", "x")},
			want:    map[string]string{"d": "link ..", "canary": "file 644 x"},
		},
		{
			name:    "hardlink to symlink out, then written",
			entries: []entry{symlink("s", "../canary"), hardlink("h", "s"), file("h", "x")},
			want:    map[string]string{"s": "link ../canary", "h": "file 644 x"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			root, _, err := unpackIn(t, layerTar(t, tc.entries...), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, imagetest.Listing(t, root)); diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTruncatedContent: an archive that ends inside a file is malformed, also
// when its digest is right.
func TestTruncatedContent(t *testing.T) {
	t.Parallel()
	raw := layerTar(t, file("a", strings.Repeat("x", 10000)))
	for _, size := range []int{600, 5000} {
		cut := raw[:size]
		_, err := Unpack(t.Context(), t.TempDir(), bytes.NewReader(cut), testFormat(t), orDefaults(Limits{}))
		if !errors.Is(err, blob.ErrMalformed) {
			t.Errorf("cut to %d bytes: error %v, want %v", len(cut), err, blob.ErrMalformed)
		}
	}
}
