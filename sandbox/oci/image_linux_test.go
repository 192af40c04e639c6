package oci

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/image"
	"github.com/proctor-run/proctor/sandbox/oci/internal/network"
	"github.com/proctor-run/proctor/sandbox/sandboxtest"
)

// testImages is an environment variable: the directory of the store of
// TestContractImage, for the processes of their own that the contract asks for.
const testImages = "PROCTOR_TEST_IMAGES"

// imageStore returns a store, and a reference of an image made of the test
// root file system.
func imageStore(t testing.TB) (*image.Store, string) {
	t.Helper()
	return openImages(t, imageDir(t))
}

func imageArchive(dir string) string { return filepath.Join(dir, "image.tar") }

// imageDir makes a directory with an archive of the image.
func imageDir(t testing.TB) string {
	t.Helper()
	need.Rootfs(t)
	archive, err := sharedArchive()
	if err != nil {
		t.Fatal(err)
	}
	dir := stateDir(t)
	if err := os.Symlink(archive, imageArchive(dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// rootfsLayer is the test root file system as the layer of an image, which takes
// seconds to compress.
var rootfsLayer = sync.OnceValues(func() (v1.Layer, error) {
	return tarball.LayerFromFile(os.Getenv(need.RootfsVar), tarball.WithCompressedCaching)
})

// sharedArchive is an archive with the image of imageStore.
var sharedArchive = sync.OnceValues(func() (string, error) {
	dir, err := testsDir()
	if err != nil {
		return "", err
	}
	layer, err := rootfsLayer()
	if err != nil {
		return "", err
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return "", err
	}
	img, err = mutate.Config(img, v1.Config{Env: []string{"PATH=/usr/bin:/bin:/usr/sbin", "FROM_IMAGE=yes"}, WorkingDir: "/made/by/config"})
	if err != nil {
		return "", err
	}
	archive := imageArchive(dir)
	return archive, tarball.WriteToFile(archive, name.MustParseReference("debian:test"), img)
})

func openImages(t testing.TB, dir string) (*image.Store, string) {
	t.Helper()
	store, err := image.Open(filepath.Join(dir, "images"), image.Options{Offline: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store, "docker-archive:" + imageArchive(dir)
}

// contractImages is imageStore, with the store of the process that has started
// this one where there is one: several processes may use one.
func contractImages(t testing.TB) (*image.Store, string) {
	t.Helper()
	if dir := os.Getenv(testImages); dir != "" {
		return openImages(t, dir)
	}
	dir := imageDir(t)
	if err := os.Setenv(testImages, dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Unsetenv(testImages) })
	return openImages(t, dir)
}

func TestContractImage(t *testing.T) {
	t.Parallel()
	store, ref := contractImages(t)
	for _, name := range runtimeNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, name)
			opts := testOptions(t, name)
			world := &sandboxtest.World{}
			opts.OwnRoot, opts.Images, opts.Egress = false, store, world.Upstream()
			sandboxtest.Run(t, sandboxtest.Config{
				New:     func(t testing.TB) sandbox.Backend { return newBackend(t, opts) },
				World:   world,
				Outside: network.Try(tunPath) == nil,
				Spec:    sandbox.Spec{Name: "contract", Image: sandbox.Image{Ref: ref}},
				OneUser: oneUser(),
			})
		})
	}
}

func TestImageSettings(t *testing.T) {
	t.Parallel()
	store, ref := imageStore(t)
	needRuntime(t, RuntimeRunc)
	opts := testOptions(t, RuntimeRunc)
	opts.OwnRoot, opts.Images = false, store
	b := newBackend(t, opts)
	dockerfile := "FROM " + ref + "\nENV A=1 FROM_IMAGE=changed\nWORKDIR /made\nWORKDIR here\n"
	build := &sandbox.Build{ContextDir: contextDir(t, map[string]string{"Dockerfile": dockerfile}), Name: "task"}
	tests := []struct {
		name string
		spec sandbox.Spec
		want string
	}{
		{"image", sandbox.Spec{Image: sandbox.Image{Ref: ref}}, "/made/by/config yes unset 0"},
		{"Dockerfile", sandbox.Spec{Image: sandbox.Image{Build: build}}, "/made/here changed 1 0"},
		{"reference wins", sandbox.Spec{Image: sandbox.Image{Ref: ref, Build: build}}, "/made/by/config yes unset 0"},
		{"forced build", sandbox.Spec{Image: sandbox.Image{Ref: ref, Build: build, ForceBuild: true}}, "/made/here changed 1 0"},
		{"Spec", sandbox.Spec{Image: sandbox.Image{Ref: ref}, Workdir: "/usr", Env: []string{"A=2"}}, "/usr yes 2 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := say(t, create(t, b, tt.spec), `echo "$PWD $FROM_IMAGE ${A-unset} $(id -u)"`)
			if strings.TrimSpace(got) != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// create makes a sandbox that is destroyed with the test.
func create(t testing.TB, b *Backend, spec sandbox.Spec) sandbox.Sandbox {
	t.Helper()
	spec.Name = t.Name()
	s, err := b.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Destroy(cleanupContext(t)); err != nil {
			t.Error(err)
		}
	})
	return s
}

// say runs a script that must succeed and returns what it says.
func say(t testing.TB, s sandbox.Sandbox, script string) string {
	t.Helper()
	var out bytes.Buffer
	st, err := s.Exec(t.Context(), sandbox.Command{Shell: script, Stdout: &out})
	if err != nil || st.Code != 0 {
		t.Fatalf("%s: %v, %v: %s", script, st, err, out.String())
	}
	return out.String()
}

func TestImageErrors(t *testing.T) { //nolint:tparallel // one after the other: each looks for what it left
	t.Parallel()
	store, err := image.Open(filepath.Join(stateDir(t), "images"), image.Options{Offline: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	opts := testOptions(t, "")
	opts.OwnRoot, opts.Images = false, store
	b := newBackend(t, opts)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM debian\nADD https://example.org/x /\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		spec sandbox.Spec
		want error
	}{
		{"no such image", sandbox.Spec{Image: sandbox.Image{Ref: "docker-archive:/nowhere.tar"}}, sandbox.ErrImageNotFound},
		{"build", sandbox.Spec{Image: sandbox.Image{Build: &sandbox.Build{ContextDir: dir}}}, sandbox.ErrUnsupported},
		{"unknown network mode", sandbox.Spec{Network: sandbox.Network{Mode: "sometimes"}}, sandbox.ErrUnsupported},
		{"GPU", sandbox.Spec{Resources: sandbox.Resources{GPUs: 1}}, sandbox.ErrUnsupported},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := b.Create(t.Context(), tt.spec); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if left, _ := os.ReadDir(filepath.Join(opts.StateDir, sandboxesDir)); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
