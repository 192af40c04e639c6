package image

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/proctor-run/proctor/sandbox"
)

func TestMake(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "store")
	// Two stores on one directory stand for two processes.
	stores := []*Store{openStore(t, store, Options{Offline: true}), openStore(t, store, Options{Offline: true})}
	const ref = "built.invalid/x:1"
	var made atomic.Int32
	produce := func(s *Store) func(context.Context, func(string)) (Image, error) {
		return func(ctx context.Context, say func(string)) (Image, error) {
			made.Add(1)
			say("working")
			return s.Commit(ctx, Image{}, "", Changes{Env: []string{"A=1"}})
		}
	}
	var wg sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		wg.Go(func() {
			s := stores[i%2]
			img, err := s.Make(t.Context(), ref, false, nil, produce(s))
			if err != nil {
				t.Error(err)
			}
			if img.Ref != ref {
				t.Errorf("reference %q", img.Ref)
			}
			ids[i] = img.ID
		})
	}
	wg.Wait()
	if made.Load() != 1 {
		t.Errorf("it was made %d times", made.Load())
	}
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Errorf("images %q", ids)
		}
	}
	if img, err := stores[0].Resolve(t.Context(), ref); err != nil || img.ID != ids[0] {
		t.Errorf("resolved to %q, %v", img.ID, err)
	}
	said := ""
	if _, err := stores[1].Make(t.Context(), ref, true, func(m string) { said = m }, produce(stores[1])); err != nil || made.Load() != 2 || said != "working" {
		t.Errorf("made anew: %v, %d times, said %q", err, made.Load(), said)
	}
}

func TestMakeErrors(t *testing.T) {
	t.Parallel()
	s := openStore(t, filepath.Join(t.TempDir(), "store"), Options{Offline: true})
	broken := errors.New("broken")
	fail := func(context.Context, func(string)) (Image, error) { return Image{}, broken }
	if _, err := s.Make(t.Context(), "built.invalid/x:1", false, nil, fail); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Resolve(t.Context(), "built.invalid/x:1"); !errors.Is(err, sandbox.ErrImageNotFound) {
		t.Errorf("what failed is noted: %v", err)
	}
	for _, bad := range []string{"oci:/x", "A B"} {
		if _, err := s.Make(t.Context(), bad, false, nil, fail); err == nil || errors.Is(err, broken) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "store")
	s := openStore(t, store, Options{Offline: true})
	lower := imageOf(t, v1.Config{}, layerTar(t,
		file("both", "low"), file("gone", "x"), dir("d", 0o755), file("d/a", "a"), file("d/b", "b"),
		dir("opaque", 0o755), file("opaque/low", "x"), dir("becomes-file", 0o755), file("becomes-file/x", "x"),
		file("becomes-dir", "x"), symlink("link", "d"),
	), layerTar(t,
		file("both", "high"), whiteout(".wh.gone"), whiteout("d/.wh.a"), file("d/c", "c"),
		dir("opaque", 0o755), whiteout("opaque/.wh..wh..opq"), file("opaque/high", "x"), file("becomes-file", "f"),
		dir("becomes-dir", 0o755), file("becomes-dir/y", "y"),
	))
	img := mustPull(t, s, "oci:"+writeLayout(t, map[string]v1.Image{"x": lower}))
	files := img.Files()
	var got []string
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Type().IsRegular() {
			data, err := fs.ReadFile(files, name)
			if err != nil {
				return err
			}
			name += "=" + string(data)
		}
		got = append(got, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := ". becomes-dir becomes-dir/y=y becomes-file=f both=high d d/b=b d/c=c link opaque opaque/high=x"
	if text := strings.Join(got, " "); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	for _, name := range []string{"gone", "d/a", "opaque/low", "becomes-file/x", "link/b", "d/b/c", "../x", "d/../both", "", "/d"} {
		if _, err := files.Lstat(name); err == nil {
			t.Errorf("%q exists", name)
		}
	}
	if to, err := files.ReadLink("link"); to != "d" || err != nil {
		t.Errorf("link: %q, %v", to, err)
	}
	if _, err := files.Open("d"); err == nil {
		t.Error("a directory was opened")
	}
	if _, err := (Image{}).Files().ReadDir("."); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("empty image: %v", err)
	}
}
