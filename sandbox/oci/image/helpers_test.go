package image

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	memregistry "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	ocilayout "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/imagetest"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/source"
)

// The entries of layers, by shorter names.
type entry = imagetest.Entry

var (
	file, dir, symlink, hardlink, whiteout = imagetest.File, imagetest.Dir, imagetest.Symlink, imagetest.Hardlink, imagetest.Whiteout

	layerTar = imagetest.LayerTar
)

func layerOf(t testing.TB, raw []byte) v1.Layer {
	t.Helper()
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// imageOf makes an image of layers for this machine's platform.
func imageOf(t testing.TB, config v1.Config, layers ...[]byte) v1.Image {
	t.Helper()
	img := v1.Image(empty.Image)
	for _, raw := range layers {
		var err error
		if img, err = mutate.AppendLayers(img, layerOf(t, raw)); err != nil {
			t.Fatal(err)
		}
	}
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", testPlatform().Architecture, config
	if img, err = mutate.ConfigFile(img, file); err != nil {
		t.Fatal(err)
	}
	return img
}

func openStore(t testing.TB, dir string, opts Options) *Store {
	t.Helper()
	if opts.Keychain == nil {
		opts.Keychain = authn.NewMultiKeychain() // anonymous, whoever runs the test
	}
	s, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing the store: %v", err)
		}
	})
	return s
}

// noSleep makes retries immediate and notes how long they would have waited.
func noSleep(s *Store, waited *[]time.Duration) {
	s.sleep = func(_ context.Context, d time.Duration) error {
		if waited != nil {
			*waited = append(*waited, d)
		}
		return nil
	}
}

// newRegistryServer starts a registry on this machine and returns its host.
func newRegistryServer(t testing.TB) string {
	t.Helper()
	srv := httptest.NewServer(memregistry.New(memregistry.Logger(quiet())))
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

func push(t testing.TB, ref string, img v1.Image) {
	t.Helper()
	n, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(n, img); err != nil {
		t.Fatal(err)
	}
}

// writeLayout makes an OCI layout that has images under names.
func writeLayout(t testing.TB, images map[string]v1.Image) string {
	t.Helper()
	dir := t.TempDir()
	p, err := ocilayout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	for ref, img := range images {
		if err := p.AppendImage(img, ocilayout.WithAnnotations(map[string]string{source.AnnotationRef: ref})); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func mustPull(t testing.TB, s *Store, ref string) Image {
	t.Helper()
	img, err := s.Pull(t.Context(), ref, nil)
	if err != nil {
		t.Fatalf("pulling %q: %v", ref, err)
	}
	return img
}

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func testPlatform() v1.Platform { return v1.Platform{OS: "linux", Architecture: runtime.GOARCH} }

var errTest = errors.New("the test says so")
