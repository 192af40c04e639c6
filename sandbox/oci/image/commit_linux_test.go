package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"
)

// upperDir makes an upper directory by unpacking, which makes whiteouts as
// overlay does. It lies beside the store.
func upperDir(t *testing.T, store string, f format, entries ...entry) string {
	t.Helper()
	upper := filepath.Join(filepath.Dir(store), "upper-"+digestOf([]byte(t.Name()))[7:15])
	if err := os.Mkdir(upper, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := unpack(t.Context(), upper, bytes.NewReader(layerTar(t, entries...)), f, Limits{}.withDefaults()); err != nil {
		t.Fatal(err)
	}
	return upper
}

func TestCommit(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "store")
	s := openStore(t, store, Options{Offline: true})
	base := mustPull(t, s, "oci:"+writeLayout(t, map[string]v1.Image{"x": sample(t)}))
	content := []entry{file("new", "x"), symlink("link", "new"), hardlink("hard", "new"), whiteout(".wh.etc")}
	changes := Changes{
		Ref: "hb__task", Env: []string{"A=2", "B=3"}, Workdir: "/app", User: "1000:1000",
		Shell: []string{"/bin/bash", "-c"}, Labels: map[string]string{"l": "m"}, CreatedBy: "RUN make",
	}
	img, err := s.Commit(t.Context(), base, upperDir(t, store, s.format, content...), changes)
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Env: []string{"PATH=/bin", "A=2", "B=3"}, User: "1000:1000", Workdir: "/app", Shell: []string{"/bin/bash", "-c"},
		Entrypoint: []string{"/init"}, Cmd: []string{"x"}, Labels: map[string]string{"k": "v", "l": "m"},
	}
	if diff := cmp.Diff(want, img.Config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	if len(img.Layers) != 3 || img.Layers[0] != base.Layers[0] || img.Layers[1] != base.Layers[1] {
		t.Fatalf("layers are %+v, want one more than %+v", img.Layers, base.Layers)
	}
	tree := map[string]string{"new": "file 644 x", "link": "link new", "hard": "file 644 x", "etc": "whiteout"}
	if diff := cmp.Diff(tree, listing(t, img.Layers[2].Dir)); diff != "" {
		t.Errorf("new layer (-want +got):\n%s", diff)
	}

	again := upperDir(t, store, s.format, content...)
	same, err := s.Commit(t.Context(), base, again, changes)
	if err != nil {
		t.Fatal(err)
	}
	if same.ID != img.ID {
		t.Errorf("the same commit has ID %s, want %s", same.ID, img.ID)
	}
	if _, err := os.Stat(again); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the upper directory: got %v, want that it is gone", err)
	}

	found, err := s.Resolve(t.Context(), "hb__task")
	if err != nil || found.ID != img.ID {
		t.Errorf("resolving by name: got %s (%v), want %s", found.ID, err, img.ID)
	}
	if pulled := mustPull(t, s, "hb__task:latest"); pulled.ID != img.ID {
		t.Errorf("pulling by name: got %s, want %s", pulled.ID, img.ID)
	}
	onTop, err := s.Commit(t.Context(), img, "", Changes{Workdir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	if onTop.ID == img.ID || len(onTop.Layers) != 3 || onTop.Config.Workdir != "/" || onTop.Config.User != "1000:1000" {
		t.Errorf("a change of config alone gave %+v", onTop)
	}
	assertNoLeftovers(t, s)
}

func TestCommitScratch(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "store")
	s := openStore(t, store, Options{Offline: true})
	img, err := s.Commit(t.Context(), Image{}, upperDir(t, store, s.format, file("a", "x")), Changes{Ref: "scratch-built"})
	if err != nil {
		t.Fatal(err)
	}
	if len(img.Layers) != 1 || img.UserXattr != (s.format == formatUser) {
		t.Errorf("image is %+v", img)
	}
}

func TestCommitOnSynthetic(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "store")
	s := openStore(t, store, Options{Offline: true})
	base := mustPull(t, s, "oci:"+writeLayout(t, map[string]v1.Image{"x": imageOf(t, v1.Config{},
		layerTar(t, dir("tmp", 0o1777)), layerTar(t, file("tmp/x", "")))}))
	img, err := s.Commit(t.Context(), base, upperDir(t, store, s.format, file("a", "x")), Changes{})
	if err != nil {
		t.Fatal(err)
	}
	if len(base.Layers) != 3 || len(img.Layers) != 4 {
		t.Errorf("%d layers on %d, want 4 on 3", len(img.Layers), len(base.Layers))
	}
}

func TestCommitRefuses(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "store")
	s := openStore(t, store, Options{Offline: true})
	if _, err := s.Commit(t.Context(), Image{ID: digestOf(nil)}, "", Changes{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("on a base that is not there: got %v", err)
	}
	if _, err := s.Commit(t.Context(), Image{}, "", Changes{Ref: "oci:x"}); err == nil {
		t.Error("an image got the name of a file")
	}
	if _, err := s.Commit(t.Context(), Image{}, filepath.Join(store, "missing"), Changes{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a missing directory: got %v", err)
	}
	upper := upperDir(t, store, s.format, dir("renamed", 0o755))
	err := unix.Setxattr(filepath.Join(upper, "renamed"), string(s.format)+".overlay.redirect", []byte("/x"), 0)
	if errors.Is(err, unix.ENOTSUP) {
		t.Skip("the file system here has no user attributes")
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), Image{}, upper, Changes{}); err == nil || !strings.Contains(err.Error(), "redirect_dir=off") {
		t.Errorf("of a redirected directory: got %v", err)
	}
}

// TestPackUnpack: packing what was unpacked and unpacking that gives the same
// tree, and packing it again the same bytes.
func TestPackUnpack(t *testing.T) {
	t.Parallel()
	f := testFormat(t)
	entries := []entry{
		dir("a", 0o700), file("a/f", "content"), hardlink("a/g", "a/f"), symlink("a/s", "../../x"), whiteout("a/.wh.w"),
		dir("o", 0o755), whiteout("o/.wh..wh..opq"), file("o/n", strings.Repeat("x", 100_000)), dir("closed", 0), file("closed/f", "x"),
	}
	closed := file("unreadable", "x")
	closed.Mode = 0
	closed.ModTime = time.Unix(1_400_000_000, 123_456_789)
	closed.Format = tar.FormatPAX // for the fraction
	first, _, err := unpackIn(t, layerTar(t, append(entries, closed)...), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var once, twice bytes.Buffer
	if _, err := pack(t.Context(), &once, first, f); err != nil {
		t.Fatal(err)
	}
	second, _, err := unpackIn(t, once.Bytes(), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pack(t.Context(), &twice, second, f); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(once.Bytes(), twice.Bytes()) {
		t.Error("packing the unpacked gives other bytes")
	}
	openAll(t, first)
	openAll(t, second)
	if diff := cmp.Diff(listing(t, first), listing(t, second)); diff != "" {
		t.Errorf("trees (-first +second):\n%s", diff)
	}
}

// openAll makes what is closed to its owner readable, for listing as an
// ordinary user.
func openAll(t *testing.T, root string) {
	t.Helper()
	for _, name := range []string{"closed", "unreadable"} {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(root, name), &st); err != nil || st.Mode&0o7777 != 0 {
			t.Fatalf("mode of %s is %o (%v), want 0: packing must restore it", name, st.Mode&0o7777, err)
		}
		if err := os.Chmod(filepath.Join(root, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPackDropsDevicesAndSockets(t *testing.T) {
	t.Parallel()
	upper := t.TempDir()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	// A short name, because those of sockets are.
	dirFD, err := os.Open(upper)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dirFD.Close() }()
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/s", dirFD.Fd())}); err != nil {
		t.Skipf("needs sockets in the file system: %v", err)
	}
	var buf bytes.Buffer
	notes, err := pack(t.Context(), &buf, upper, testFormat(t))
	if err != nil || notes.Devices != 1 {
		t.Errorf("notes are %+v (%v), want one left out", notes, err)
	}
	if len(listing(t, upper)) != 0 {
		t.Error("the socket is still there")
	}
}

// The upper directory may lie on another file system.
func TestCommitFromElsewhere(t *testing.T) {
	t.Parallel()
	elsewhere, err := os.MkdirTemp("/dev/shm", "upper")
	if err != nil {
		t.Skip("needs a second file system at /dev/shm")
	}
	t.Cleanup(func() { _ = removeTree(elsewhere) })
	store := filepath.Join(t.TempDir(), "store")
	if err := os.Rename(elsewhere, store+"-moved"); !errors.Is(err, unix.EXDEV) {
		t.Skip("needs /dev/shm to be a file system of its own")
	}
	s := openStore(t, store, Options{Offline: true})
	base := mustPull(t, s, "oci:"+writeLayout(t, map[string]v1.Image{"x": sample(t)}))
	upper := filepath.Join(elsewhere, "upper")
	if err := os.Mkdir(upper, 0o755); err != nil {
		t.Fatal(err)
	}
	content := []entry{dir("d", 0o750), file("d/f", "x"), hardlink("hard", "d/f"), symlink("link", "/etc"), whiteout("etc/.wh.a")}
	if _, err := unpack(t.Context(), upper, bytes.NewReader(layerTar(t, content...)), s.format, Limits{}.withDefaults()); err != nil {
		t.Skipf("needs overlay's attributes in /dev/shm: %v", err)
	}
	img, err := s.Commit(t.Context(), base, upper, Changes{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"d": "dir 750", "d/f": "file 644 x", "hard": "file 644 x", "link": "link /etc", "etc": "dir 755", "etc/a": "whiteout"}
	top := img.Layers[len(img.Layers)-1]
	if diff := cmp.Diff(want, listing(t, top.Dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := os.Lstat(upper); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the upper directory is still there: %v", err)
	}
}
