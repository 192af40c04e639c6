package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/imagetest"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/source"
)

// threeImages is a mirror of images a, b and c of 1000 bytes on one base of
// 500, and a store that pulled them in this order, an hour apart.
func threeImages(t *testing.T) (store, mirror string) {
	t.Helper()
	base := layerTar(t, file("base", strings.Repeat("0", 500)))
	images := map[string]v1.Image{}
	for _, name := range []string{"a", "b", "c"} {
		images[name+":1"] = imageOf(t, v1.Config{}, base, layerTar(t, file(name, strings.Repeat(name, 1000))))
	}
	mirror, store = writeLayout(t, images), t.TempDir()
	now := time.Now().Add(-5 * time.Hour)
	for _, name := range []string{"a", "b", "c"} {
		s := openStore(t, store, Options{Mirrors: []string{mirror}, Offline: true})
		mustPull(t, s, name+":1")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Hour)
		all, _, err := s.upkeep.survey(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range all {
			for _, f := range append(one.refs, one.file) {
				if time.Since(one.Used) < time.Minute {
					if err := os.Chtimes(f, now, now); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	return store, mirror
}

// names lists the images of a store by their one reference.
func names(t *testing.T, s *Store) []string {
	t.Helper()
	all, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, one := range all {
		got = append(got, strings.TrimPrefix(strings.Join(one.Refs, " "), "index.docker.io/library/"))
	}
	return got
}

func TestList(t *testing.T) {
	t.Parallel()
	dir, _ := threeImages(t)
	s := openStore(t, dir, Options{Offline: true})
	if diff := cmp.Diff([]string{"c:1", "b:1", "a:1"}, names(t, s)); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	img, err := s.Find(t.Context(), "a:1")
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if one.Bytes != 1500 || one.OwnBytes != 1000 || one.Layers != 2 || one.InUse != (one.ID == img.ID) {
			t.Errorf("%v: %d bytes, %d its own, %d layers, in use %v; want 1500, 1000, 2, %v",
				one.Refs, one.Bytes, one.OwnBytes, one.Layers, one.InUse, one.ID == img.ID)
		}
	}
	if again, err := s.Find(t.Context(), img.ID[:len("sha256:")+12]); err != nil || again.ID != img.ID {
		t.Errorf("by the beginning of its ID: %q (%v), want %q", again.ID, err, img.ID)
	}
}

func TestRemove(t *testing.T) {
	t.Parallel()
	dir, _ := threeImages(t)
	s := openStore(t, dir, Options{Offline: true})
	done, err := s.Remove(t.Context(), "b:1")
	if want := (Pruned{Images: 1, Layers: 1, Bytes: 1000}); err != nil || done != want {
		t.Errorf("removed %+v (%v), want %+v", done, err, want)
	}
	if diff := cmp.Diff([]string{"c:1", "a:1"}, names(t, s)); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	if _, err := s.Remove(t.Context(), "b:1"); !errors.Is(err, sandbox.ErrImageNotFound) {
		t.Errorf("again: %v, want that it is not found", err)
	}
	other := openStore(t, dir, Options{Offline: true})
	if _, err := other.Resolve(t.Context(), "a:1"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Remove(t.Context(), "a:1"); !errors.Is(err, ErrInUse) {
		t.Errorf("what another store has open: %v, want ErrInUse", err)
	}
	img, err := s.Resolve(t.Context(), "a:1")
	if err != nil {
		t.Fatalf("after that: %v", err)
	}
	if _, err := os.Stat(filepath.Join(img.Layers[1].Dir, "a")); err != nil {
		t.Error(err)
	}
}

// TestShrink: the oldest go first, and nothing that a process has open.
func TestShrink(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit int64
		open  string
		left  []string
	}{
		{3500, "", []string{"c:1", "b:1", "a:1"}},
		{3000, "", []string{"c:1", "b:1"}},
		{2000, "", []string{"c:1"}},
		{1, "", []string{}},
		{2000, "a:1", []string{"a:1"}},
		{3000, "a:1", []string{"c:1", "a:1"}},
	} {
		t.Run(fmt.Sprintf("%d %s", c.limit, c.open), func(t *testing.T) {
			t.Parallel()
			dir, _ := threeImages(t)
			if c.open != "" {
				if _, err := openStore(t, dir, Options{Offline: true}).claimAged(t, c.open); err != nil {
					t.Fatal(err)
				}
			}
			s := openStore(t, dir, Options{Offline: true})
			if _, err := s.Shrink(t.Context(), c.limit, true); err != nil {
				t.Fatal(err)
			}
			if n := len(names(t, s)); n != 3 {
				t.Fatalf("a dry run left %d images, want all 3", n)
			}
			if _, err := s.Shrink(t.Context(), c.limit, false); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.left, names(t, s)); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
			_, sizes, err := s.upkeep.survey(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if want := len(c.left) + min(len(c.left), 1); len(sizes) != want {
				t.Errorf("%d layers are left, want %d", len(sizes), want)
			}
		})
	}
}

// claimAged opens an image and leaves its time as it is.
func (s *Store) claimAged(t *testing.T, ref string) (Image, error) {
	t.Helper()
	r, err := source.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(s.disk.refFile(r))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.Chtimes(s.disk.refFile(r), before.ModTime(), before.ModTime()); err != nil {
			t.Error(err)
		}
	}()
	return s.Resolve(t.Context(), ref)
}

// TestLimit: a pull beyond the limit removes the oldest, and not itself.
func TestLimit(t *testing.T) {
	t.Parallel()
	dir, mirror := threeImages(t)
	s := openStore(t, dir, Options{Mirrors: []string{mirror}, Offline: true, Limit: 2500})
	for _, name := range []string{"a:1", "b:1", "c:1"} {
		if _, err := s.Remove(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a:1", "b:1", "c:1"} {
		one := openStore(t, dir, Options{Mirrors: []string{mirror}, Offline: true, Limit: 2500})
		mustPull(t, one, name)
		if err := one.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if left := names(t, s); len(left) != 2 || !strings.Contains(strings.Join(left, " "), "c:1") {
		t.Errorf("left are %q, want two with the last one", left)
	}
}

func TestEstimate(t *testing.T) {
	t.Parallel()
	dir, mirror := threeImages(t)
	s := openStore(t, dir, Options{Mirrors: []string{mirror}, Offline: true})
	if _, err := s.Remove(t.Context(), "b:1"); err != nil {
		t.Fatal(err)
	}
	e, err := s.Estimate(t.Context(), []string{"a:1", "b:1", "b:1", "none:1"})
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Missing) != 2 || e.Unknown["none:1"] == nil || e.Download == 0 || e.Disk != 3*e.Download {
		t.Errorf("estimate %+v, want b alone with its own layer, and none unknown", e)
	}
	if err := s.CheckSpace(e); err != nil {
		t.Errorf("a few bytes: %v", err)
	}
	e.Disk = 1 << 60
	var space *SpaceError
	if err := s.CheckSpace(e); !errors.As(err, &space) || space.Images != 1 || space.Need <= space.Free {
		t.Errorf("an exabyte: %v, want a *SpaceError", err)
	}
}

// TestExport: what is exported is read back with the same files and settings,
// as a docker archive and as a layout, and is the same each time.
func TestExport(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir(), Options{})
	lower := layerTar(t, dir("etc", 0o700), file("etc/a", "lower"), file("etc/b", "lower"), file("gone", "x"))
	upper := layerTar(t, file("etc/b", "upper"), whiteout(".wh.gone"), symlink("link", "etc/b"))
	source := "oci:" + writeLayout(t, map[string]v1.Image{"x": imageOf(t, v1.Config{Env: []string{"A=b"}, WorkingDir: "/etc"}, lower, upper)})
	img := mustPull(t, s, source)
	var sums []string
	path := filepath.Join(t.TempDir(), "out.tar")
	for range 2 {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Export(t.Context(), img, "debian:12", f), f.Close()); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, blob.DigestOf(data))
	}
	if sums[0] != sums[1] {
		t.Error("two exports differ")
	}
	back := mustPull(t, openStore(t, t.TempDir(), Options{}), "docker-archive:"+path+":debian:12")
	if diff := cmp.Diff(img.Config, back.Config); diff != "" {
		t.Errorf("settings (-exported +read):\n%s", diff)
	}
	if len(back.Layers) != len(img.Layers) {
		t.Fatalf("%d layers, want %d", len(back.Layers), len(img.Layers))
	}
	for i := range img.Layers {
		if diff := cmp.Diff(imagetest.Listing(t, img.Layers[i].Dir), imagetest.Listing(t, back.Layers[i].Dir)); diff != "" {
			t.Errorf("layer %d (-exported +read):\n%s", i, diff)
		}
	}
}
