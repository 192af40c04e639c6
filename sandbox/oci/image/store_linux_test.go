package image

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/imagetest"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/source"
)

func TestConcurrentPullsShareTheWork(t *testing.T) {
	t.Parallel()
	f, host := newFlaky(t)
	img := bigImage(t)
	push(t, host+"/img", img)
	push(t, host+"/same-layer", imageOf(t, v1.Config{User: "other"}, mustUncompressed(t, img)))
	var manifests, layers atomic.Int64
	handle := func(_ http.ResponseWriter, r *http.Request) bool {
		if isManifest(r) {
			manifests.Add(1)
		}
		if isLayer(r, img) {
			layers.Add(1)
		}
		return false
	}
	f.handle.Store(&handle)
	dir := t.TempDir()
	// Two stores on one directory stand for two processes.
	stores := []*Store{openStore(t, dir, Options{}), openStore(t, dir, Options{})}
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			ref := host + "/img"
			if i%3 == 0 {
				ref = host + "/same-layer"
			}
			img, err := stores[i%2].Pull(t.Context(), ref, func(string) {})
			if err != nil || len(img.Layers) != 1 {
				t.Errorf("pulling %q: %v with %d layers", ref, err, len(img.Layers))
			}
		})
	}
	wg.Wait()
	if n := layers.Load(); n != 1 {
		t.Errorf("the layer was fetched %d times, want once", n)
	}
	if n := manifests.Load(); n > 4 {
		t.Errorf("manifests were fetched %d times, want at most once per image and store", n)
	}
	for _, s := range stores {
		assertNoLeftovers(t, s)
	}
}

func mustUncompressed(t *testing.T, img v1.Image) []byte {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	r, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := bounded.Read(r, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestOneWaiterLeavesTheOthersGet(t *testing.T) {
	t.Parallel()
	f, host := newFlaky(t)
	img := bigImage(t)
	push(t, host+"/img", img)
	started, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	handle := func(_ http.ResponseWriter, r *http.Request) bool {
		if isLayer(r, img) {
			once.Do(func() { close(started) })
			<-release
		}
		return false
	}
	f.handle.Store(&handle)
	s := openStore(t, t.TempDir(), Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { _, err := s.Pull(ctx, host+"/img", nil); first <- err }()
	<-started
	joined := make(chan struct{})
	var joinedOnce sync.Once
	go func() {
		_, err := s.Pull(t.Context(), host+"/img", func(string) { joinedOnce.Do(func() { close(joined) }) })
		second <- err
	}()
	<-joined // it hears the last message as soon as it waits too
	cancel(errTest)
	if err := <-first; !errors.Is(err, errTest) {
		t.Errorf("who left got %v, want the cause", err)
	}
	close(release)
	if err := <-second; err != nil {
		t.Errorf("who stayed got %v", err)
	}
}

func TestSecondPullAsksNobody(t *testing.T) {
	t.Parallel()
	f, host := newFlaky(t)
	push(t, host+"/img", sample(t))
	dir := t.TempDir()
	mustPull(t, openStore(t, dir, Options{}), host+"/img")
	var asked atomic.Int64
	handle := func(http.ResponseWriter, *http.Request) bool { asked.Add(1); return false }
	f.handle.Store(&handle)
	checkSample(t, mustPull(t, openStore(t, dir, Options{Offline: true}), host+"/img"))
	checkSample(t, mustPull(t, openStore(t, dir, Options{}), host+"/img"))
	if n := asked.Load(); n != 0 {
		t.Errorf("the registry was asked %d times", n)
	}
	checkSample(t, mustPull(t, openStore(t, dir, Options{Refresh: true}), host+"/img"))
	if asked.Load() == 0 {
		t.Error("the registry was not asked in spite of Refresh")
	}
}

// TestKilled kills a process in the middle of unpacking: the next one finds no
// part of a layer, and cleans up.
func TestKilled(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("IMAGE_TEST_KILLED"); dir != "" {
		unpackAndDie(t, dir)
		return
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), "IMAGE_TEST_KILLED="+dir)
	out, err := cmd.CombinedOutput()
	if !strings.Contains(fmt.Sprint(err), "killed") {
		t.Fatalf("the other process ended with %v: %s", err, out)
	}
	left, err := filepath.Glob(filepath.Join(dir, "tmp", "*", "layer-*", "diff", "a"))
	if err != nil || len(left) != 1 {
		t.Fatalf("left are %v (%v), want half a layer", left, err)
	}
	living := openStore(t, t.TempDir(), Options{})
	s := openStore(t, dir, Options{})
	tmp, err := os.ReadDir(filepath.Join(dir, "tmp"))
	if err != nil || len(tmp) != 2 {
		t.Errorf("in the work directory is %v (%v), want this store's own alone", tmp, err)
	}
	if _, err := os.Stat(living.disk.session.dir); err != nil {
		t.Errorf("the work of a living store: %v", err)
	}
	img := imageOf(t, v1.Config{}, layerTar(t, file("a", "x"), file("b", "y")))
	got := mustPull(t, s, "oci:"+writeLayout(t, map[string]v1.Image{"x": img}))
	if diff := cmp.Diff(map[string]string{"a": "file 644 x", "b": "file 644 y"}, imagetest.Listing(t, got.Layers[0].Dir)); diff != "" {
		t.Errorf("layer (-want +got):\n%s", diff)
	}
}

func unpackAndDie(t *testing.T, dir string) {
	// What is read ahead when a is there already.
	ahead := strings.Repeat("-", 2<<20)
	raw := layerTar(t, file("a", "x"), file("ahead", ahead), file("b", "y"))
	img := imageOf(t, v1.Config{}, raw)
	cfg, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.layers.unpack(t.Context(), cfg.RootFS.DiffIDs[0], dying{raw}, nil)
	t.Fatalf("still alive: %v", err)
}

// dying is a layer whose reader kills the process before the last entry.
type dying struct{ raw []byte }

func (d dying) Size() int64 { return int64(len(d.raw)) }

func (d dying) Origin() any { return "" }

func (d dying) Estimate() (download, disk int64) { return 0, d.Size() }

func (d dying) Open(context.Context, func(int)) (source.Stream, error) {
	return &dyingStream{left: d.raw}, nil
}

type dyingStream struct{ left []byte }

func (d *dyingStream) Read(p []byte) (int, error) {
	if len(d.left) < 3000 {
		if err := unix.Kill(os.Getpid(), unix.SIGKILL); err != nil {
			return 0, err
		}
		select {}
	}
	n := copy(p[:min(len(p), len(d.left)-2999)], d.left)
	d.left = d.left[n:]
	return n, nil
}

func (d *dyingStream) Check() error { return nil }

func (d *dyingStream) Close() error { return nil }

// TestDamagedStore: what a power failure may leave is not used.
func TestDamagedStore(t *testing.T) {
	t.Parallel()
	ref := "oci:" + writeLayout(t, map[string]v1.Image{"x": sample(t)})
	for _, damage := range []string{"layers/*/*/layer.json", "images/*.json"} {
		t.Run(damage, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			before := openStore(t, dir, Options{})
			mustPull(t, before, ref)
			if err := before.Close(); err != nil {
				t.Fatal(err)
			}
			paths, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(damage)))
			if err != nil || len(paths) == 0 {
				t.Fatalf("nothing to damage: %v", err)
			}
			for _, p := range paths {
				if err := os.Truncate(p, 0); err != nil {
					t.Fatal(err)
				}
			}
			s := openStore(t, dir, Options{})
			if _, err := s.Resolve(t.Context(), ref); !errors.Is(err, sandbox.ErrImageNotFound) {
				t.Errorf("resolving: got %v, want %v", err, sandbox.ErrImageNotFound)
			}
			checkSample(t, mustPull(t, s, ref))
		})
	}
}

func TestClosedStore(t *testing.T) {
	t.Parallel()
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	}
	if _, err := s.Pull(t.Context(), "debian:12", nil); !errors.Is(err, errClosed) {
		t.Errorf("pulling: got %v, want %v", err, errClosed)
	}
	if left, err := os.ReadDir(filepath.Join(s.disk.dir, "tmp")); err != nil || len(left) != 0 {
		t.Errorf("left in the work directory: %v (%v)", left, err)
	}
}

func TestStoreIsPrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	openStore(t, dir, Options{})
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the store has mode %v (%v), want 0700", info.Mode(), err)
	}
}

func TestImplicitDirectoriesLookLikeLowerOnes(t *testing.T) {
	t.Parallel()
	base := layerTar(t, dir("tmp", 0o1777), dir("opt", 0o750), dir("opt/app", 0o700), dir("plain", 0o755), dir("gone", 0o711), dir("hid", 0o711), dir("hid/in", 0o701))
	mid := layerTar(t, whiteout(".wh.gone"), dir("hid", 0o755), whiteout("hid/.wh..wh..opq"))
	top := layerTar(t, file("tmp/x", ""), file("opt/app/bin/x", ""), file("plain/x", ""), file("gone/x", ""), file("hid/in/x", ""), file("new/x", ""))
	s := openStore(t, t.TempDir(), Options{})
	with := mustPull(t, s, "oci:"+writeLayout(t, map[string]v1.Image{"x": imageOf(t, v1.Config{}, base, mid, top)}))
	if len(with.Layers) != 4 || !with.Layers[3].Synthetic {
		t.Fatalf("layers are %+v, want a synthetic one on top of three", with.Layers)
	}
	want := map[string]string{"tmp": "dir 1777", "opt": "dir 750", "opt/app": "dir 700"}
	if diff := cmp.Diff(want, imagetest.Listing(t, with.Layers[3].Dir)); diff != "" {
		t.Errorf("synthetic layer (-want +got):\n%s", diff)
	}
	alone := mustPull(t, s, "oci:"+writeLayout(t, map[string]v1.Image{"x": imageOf(t, v1.Config{}, top)}))
	if len(alone.Layers) != 1 || alone.Layers[0].Dir != with.Layers[2].Dir {
		t.Errorf("layers are %+v, want the shared one alone", alone.Layers)
	}
}

func TestOpaqueRootDropsLowerLayers(t *testing.T) {
	t.Parallel()
	img := imageOf(t, v1.Config{}, layerTar(t, file("old", "")), layerTar(t, whiteout(".wh..wh..opq"), file("new", "")), layerTar(t, file("newer", "")))
	got := mustPull(t, openStore(t, t.TempDir(), Options{}), "oci:"+writeLayout(t, map[string]v1.Image{"x": img}))
	if len(got.Layers) != 2 {
		t.Fatalf("%d layers, want the upper 2 of 3", len(got.Layers))
	}
	if diff := cmp.Diff(map[string]string{"new": "file 644 "}, imagetest.Listing(t, got.Layers[0].Dir)); diff != "" {
		t.Errorf("lowest layer (-want +got):\n%s", diff)
	}
}

// TestOverlay mounts what Pull returns, as the kernel understands it.
func TestOverlay(t *testing.T) {
	t.Parallel()
	need.Root(t)
	s := openStore(t, t.TempDir(), Options{})
	img := imageOf(t, v1.Config{},
		layerTar(t, dir("etc", 0o755), file("etc/a", "1"), file("etc/b", "1"), dir("d", 0o755), file("d/x", "1"), dir("tmp", 0o1777), file("f", "1")),
		layerTar(t, file("etc/c", "2"), whiteout("etc/.wh.b"), whiteout("d/.wh..wh..opq"), file("d/y", "2"), file("tmp/x", "2"), whiteout(".wh.f")))
	got := mustPull(t, s, "oci:"+writeLayout(t, map[string]v1.Image{"x": img}))
	merged := t.TempDir()
	options := "lowerdir=" + strings.Join(got.Dirs(), ":")
	if got.UserXattr {
		options += ",userxattr"
	}
	err := unix.Mount("overlay", merged, "overlay", unix.MS_RDONLY, options)
	need.That(t, "overlay", err == nil, fmt.Sprintf("needs overlay mounts: %v", err))
	defer func() {
		if err := unix.Unmount(merged, 0); err != nil {
			t.Error(err)
		}
	}()
	want := map[string]string{
		"etc": "dir 755", "etc/a": "file 644 1", "etc/c": "file 644 2",
		"d": "dir 755", "d/y": "file 644 2", "tmp": "dir 1777", "tmp/x": "file 644 2",
	}
	if diff := cmp.Diff(want, imagetest.Listing(t, merged)); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	shared, own, gone := layerTar(t, file("shared", "1")), layerTar(t, file("own", "22")), layerTar(t, file("gone", "333"))
	mirror := writeLayout(t, map[string]v1.Image{
		"keep:1": imageOf(t, v1.Config{}, shared, own),
		"drop:1": imageOf(t, v1.Config{}, shared, gone),
		"busy:1": imageOf(t, v1.Config{}, layerTar(t, file("busy", "4444"))),
	})
	dir := t.TempDir()
	first, err := Open(dir, Options{Mirrors: []string{mirror}, Offline: true})
	if err != nil {
		t.Fatal(err)
	}
	keep := mustPull(t, first, "keep:1")
	drop := mustPull(t, first, "drop:1")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	other := openStore(t, dir, Options{Mirrors: []string{mirror}, Offline: true})
	busy := mustPull(t, other, "busy:1")

	s := openStore(t, dir, Options{Offline: true})
	done, err := s.Prune(t.Context(), keep)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Pruned{Images: 2, Layers: 1, Bytes: 3}); done != want {
		t.Errorf("pruned %+v, want %+v", done, want)
	}
	for _, l := range append(keep.Layers, busy.Layers...) {
		if _, err := os.Stat(l.Dir); err != nil {
			t.Errorf("a layer in use: %v", err)
		}
	}
	if _, err := os.Stat(drop.Layers[1].Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the unused layer: got %v, want that it is gone", err)
	}
	mustPull(t, s, "keep:1")
	if _, err := s.Pull(t.Context(), "drop:1", nil); !errors.Is(err, sandbox.ErrImageNotFound) {
		t.Errorf("pulling what was pruned: got %v, want %v", err, sandbox.ErrImageNotFound)
	}
	// Handed out now, so kept without being named.
	if done, err := s.Prune(t.Context()); err != nil || done != (Pruned{}) {
		t.Errorf("pruned %+v (%v), want nothing", done, err)
	}
	assertNoLeftovers(t, s)
}

// TestPruneUnused: built images go when nobody asked for them for long; pulled
// ones, those asked for since, and layers that a store has handed out stay.
func TestPruneUnused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	images := map[string]v1.Image{}
	for name, size := range map[string]string{"built/old:1": "1", "built/new:1": "22", "built/busy:1": "333", "pulled:1": "4444"} {
		images[name] = imageOf(t, v1.Config{}, layerTar(t, file("f", name+size)))
	}
	mirror := Options{Mirrors: []string{writeLayout(t, images)}, Offline: true}
	first, err := Open(dir, mirror)
	if err != nil {
		t.Fatal(err)
	}
	for name := range images {
		mustPull(t, first, name)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	refs, err := filepath.Glob(filepath.Join(dir, "refs", "*"))
	if err != nil || len(refs) != len(images) {
		t.Fatal(refs, err)
	}
	old := time.Now().Add(-8 * 24 * time.Hour)
	age := func() {
		for _, path := range refs {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	age()
	other := openStore(t, dir, mirror)
	busy := mustPull(t, other, "built/busy:1")
	age()
	mustPull(t, other, "built/new:1") // notes that it is in use
	s := openStore(t, dir, Options{Offline: true})
	unused := Unused{Prefix: "index.docker.io/built/", Since: time.Now().Add(-7 * 24 * time.Hour), Dry: true}
	dry, err := s.PruneUnused(t.Context(), unused)
	if err != nil {
		t.Fatal(err)
	}
	if still, err := filepath.Glob(filepath.Join(dir, "*", "*.json")); err != nil || len(still) != 2*len(images) {
		t.Errorf("after a dry run there is %q (%v)", still, err)
	}
	age()
	mustPull(t, other, "built/new:1")
	unused.Dry = false
	done, err := s.PruneUnused(t.Context(), unused)
	if want := (Pruned{Images: 2, Layers: 1, Bytes: int64(len("built/old:11"))}); err != nil || done != want || dry.Images != want.Images {
		t.Errorf("pruned %+v (%v), dry %+v, want %+v", done, err, dry, want)
	}
	for _, l := range busy.Layers {
		if _, err := os.Stat(l.Dir); err != nil {
			t.Errorf("a layer in use: %v", err)
		}
	}
	for name, there := range map[string]bool{"built/old:1": false, "built/new:1": true, "pulled:1": true} {
		if _, err := s.Resolve(t.Context(), name); (err == nil) != there {
			t.Errorf("%s: %v, there %v", name, err, there)
		}
	}
}

func TestPruneClosedDirectories(t *testing.T) {
	t.Parallel()
	dirPath := t.TempDir()
	first, err := Open(dirPath, Options{})
	if err != nil {
		t.Fatal(err)
	}
	img := imageOf(t, v1.Config{}, layerTar(t, dir("a", 0), dir("a/b", 0o111), file("a/b/c", "x")))
	mustPull(t, first, "oci:"+writeLayout(t, map[string]v1.Image{"x": img}))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, dirPath, Options{})
	if done, err := s.Prune(t.Context()); err != nil || done.Layers != 1 {
		t.Errorf("pruned %+v (%v), want the layer", done, err)
	}
	assertNoLeftovers(t, s)
}
