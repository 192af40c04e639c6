package image

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/imagetest"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/layerfs"
)

// upperDir makes an upper directory by unpacking, which makes whiteouts as
// overlay does. It lies beside the store.
func upperDir(t *testing.T, store string, f layerfs.Format, entries ...entry) string {
	t.Helper()
	upper := filepath.Join(filepath.Dir(store), "upper-"+blob.DigestOf([]byte(t.Name()))[7:15])
	if err := os.Mkdir(upper, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := layerfs.Unpack(t.Context(), upper, bytes.NewReader(layerTar(t, entries...)), f, Limits{}.withDefaults()); err != nil {
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
	img, err := s.Commit(t.Context(), base, upperDir(t, store, s.disk.format, content...), changes)
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
	if diff := cmp.Diff(tree, imagetest.Listing(t, img.Layers[2].Dir)); diff != "" {
		t.Errorf("new layer (-want +got):\n%s", diff)
	}

	again := upperDir(t, store, s.disk.format, content...)
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
	img, err := s.Commit(t.Context(), Image{}, upperDir(t, store, s.disk.format, file("a", "x")), Changes{Ref: "scratch-built"})
	if err != nil {
		t.Fatal(err)
	}
	if len(img.Layers) != 1 || img.UserXattr != (s.disk.format == layerfs.User) {
		t.Errorf("image is %+v", img)
	}
}

func TestCommitOnSynthetic(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "store")
	s := openStore(t, store, Options{Offline: true})
	base := mustPull(t, s, "oci:"+writeLayout(t, map[string]v1.Image{"x": imageOf(t, v1.Config{},
		layerTar(t, dir("tmp", 0o1777)), layerTar(t, file("tmp/x", "")))}))
	img, err := s.Commit(t.Context(), base, upperDir(t, store, s.disk.format, file("a", "x")), Changes{})
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
	if _, err := s.Commit(t.Context(), Image{ID: blob.DigestOf(nil)}, "", Changes{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("on a base that is not there: got %v", err)
	}
	if _, err := s.Commit(t.Context(), Image{}, "", Changes{Ref: "oci:x"}); err == nil {
		t.Error("an image got the name of a file")
	}
	if _, err := s.Commit(t.Context(), Image{}, filepath.Join(store, "missing"), Changes{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a missing directory: got %v", err)
	}
	upper := upperDir(t, store, s.disk.format, dir("renamed", 0o755))
	err := unix.Setxattr(filepath.Join(upper, "renamed"), string(s.disk.format)+".overlay.redirect", []byte("/x"), 0)
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

// The upper directory may lie on another file system.
func TestCommitFromElsewhere(t *testing.T) {
	t.Parallel()
	elsewhere, err := os.MkdirTemp("/dev/shm", "upper")
	if err != nil {
		t.Skip("needs a second file system at /dev/shm")
	}
	t.Cleanup(func() { _ = layerfs.RemoveTree(elsewhere) })
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
	if _, err := layerfs.Unpack(t.Context(), upper, bytes.NewReader(layerTar(t, content...)), s.disk.format, Limits{}.withDefaults()); err != nil {
		t.Skipf("needs overlay's attributes in /dev/shm: %v", err)
	}
	img, err := s.Commit(t.Context(), base, upper, Changes{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"d": "dir 750", "d/f": "file 644 x", "hard": "file 644 x", "link": "link /etc", "etc": "dir 755", "etc/a": "whiteout"}
	top := img.Layers[len(img.Layers)-1]
	if diff := cmp.Diff(want, imagetest.Listing(t, top.Dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := os.Lstat(upper); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the upper directory is still there: %v", err)
	}
}
