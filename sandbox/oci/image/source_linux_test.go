package image

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/compression"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	ocilayout "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/imagetest"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/source"
)

var sampleConfig = v1.Config{
	Env: []string{"PATH=/bin", "A=1"}, User: "app", WorkingDir: "/srv",
	Entrypoint: []string{"/init"}, Cmd: []string{"x"}, Labels: map[string]string{"k": "v"},
}

func sample(t testing.TB) v1.Image {
	return imageOf(t, sampleConfig,
		layerTar(t, dir("etc", 0o755), file("etc/a", "lower"), file("etc/b", "lower")),
		layerTar(t, dir("etc", 0o755), file("etc/a", "upper"), whiteout("etc/.wh.b")))
}

// checkSample asserts that an image is the sample, layers and all.
func checkSample(t *testing.T, img Image) {
	t.Helper()
	want := Config{
		Env: []string{"PATH=/bin", "A=1"}, User: "app", Workdir: "/srv",
		Entrypoint: []string{"/init"}, Cmd: []string{"x"}, Labels: map[string]string{"k": "v"},
	}
	if diff := cmp.Diff(want, img.Config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	if len(img.Layers) != 2 {
		t.Fatalf("%d layers, want 2", len(img.Layers))
	}
	for i, tree := range []map[string]string{
		{"etc": "dir 755", "etc/a": "file 644 lower", "etc/b": "file 644 lower"},
		{"etc": "dir 755", "etc/a": "file 644 upper", "etc/b": "whiteout"},
	} {
		if diff := cmp.Diff(tree, imagetest.Listing(t, img.Layers[i].Dir)); diff != "" {
			t.Errorf("layer %d (-want +got):\n%s", i, diff)
		}
	}
	if dirs := img.Dirs(); dirs[0] != img.Layers[1].Dir || dirs[1] != img.Layers[0].Dir {
		t.Errorf("dirs are %q, want the highest first", dirs)
	}
}

func saveArchive(t *testing.T, images map[string]v1.Image) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "images.tar")
	refs := map[name.Tag]v1.Image{}
	for ref, img := range images {
		tag, err := name.NewTag(ref)
		if err != nil {
			t.Fatal(err)
		}
		refs[tag] = img
	}
	if err := tarball.MultiWriteToFile(path, refs); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPullSources(t *testing.T) {
	t.Parallel()
	host := newRegistryServer(t)
	push(t, host+"/team/sample:v1", sample(t))
	digest, err := sample(t).Digest()
	if err != nil {
		t.Fatal(err)
	}
	other := imageOf(t, v1.Config{}, layerTar(t, file("other", "")))
	layoutDir := writeLayout(t, map[string]v1.Image{"sample:v1": sample(t), "other:latest": other})
	lone := writeLayout(t, map[string]v1.Image{"": sample(t)})
	archivePath := saveArchive(t, map[string]v1.Image{"sample:v1": sample(t), "other": other})
	loneArchive := saveArchive(t, map[string]v1.Image{"sample:v1": sample(t)})
	zipped := gzipFile(t, loneArchive)
	colon := filepath.Join(t.TempDir(), "with:colon")
	if err := os.Rename(lone, colon); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, ref string
		digest    string
	}{
		{"registry", host + "/team/sample:v1", digest.String()},
		{"registry by digest", host + "/team/sample@" + digest.String(), digest.String()},
		{"layout by name", "oci:" + layoutDir + ":sample:v1", digest.String()},
		{"layout by tag", "oci:" + layoutDir + ":v1", digest.String()},
		{"layout with one image, colon in its path", "oci:" + colon, digest.String()},
		{"archive by name", "docker-archive:" + archivePath + ":sample:v1", ""},
		{"archive by tag", "docker-archive:" + archivePath + ":v1", ""},
		{"archive by full name", "docker-archive:" + archivePath + ":docker.io/library/sample:v1", ""},
		{"archive with one image", "docker-archive:" + loneArchive, ""},
		{"compressed archive", "docker-archive:" + zipped, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := openStore(t, t.TempDir(), Options{})
			if _, err := s.Resolve(t.Context(), tc.ref); !errors.Is(err, sandbox.ErrImageNotFound) {
				t.Errorf("resolving before the pull: got %v, want %v", err, sandbox.ErrImageNotFound)
			}
			var said []string
			img, err := s.Pull(t.Context(), tc.ref, func(m string) { said = append(said, m) })
			if err != nil {
				t.Fatal(err)
			}
			checkSample(t, img)
			if img.Ref != tc.ref || img.Digest != tc.digest {
				t.Errorf("image is %q with digest %q, want %q with %q", img.Ref, img.Digest, tc.ref, tc.digest)
			}
			if len(said) == 0 || !strings.Contains(said[len(said)-1], "2 of 2 layers") {
				t.Errorf("progress was %q, want it to end with all layers", said)
			}
			again, err := s.Resolve(t.Context(), tc.ref)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(img, again); diff != "" {
				t.Errorf("resolving after the pull (-pull +resolve):\n%s", diff)
			}
		})
	}
}

func gzipFile(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	if _, err := z.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".gz", buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path + ".gz"
}

func TestPullRandomImage(t *testing.T) {
	t.Parallel()
	host := newRegistryServer(t)
	img, err := random.Image(200_000, 7)
	if err != nil {
		t.Fatal(err)
	}
	push(t, host+"/random", img)
	got := mustPull(t, openStore(t, t.TempDir(), Options{Parallel: 3}), host+"/random")
	if len(got.Layers) != 7 {
		t.Errorf("%d layers, want 7", len(got.Layers))
	}
	for i, l := range got.Layers {
		if l.Notes.Bytes != 200_000 {
			t.Errorf("layer %d has %d bytes, want 200000", i, l.Notes.Bytes)
		}
	}
}

func TestCompressions(t *testing.T) {
	t.Parallel()
	raw := layerTar(t, file("a", strings.Repeat("content", 1000)))
	for _, c := range []compression.Compression{compression.GZip, compression.ZStd, compression.None} {
		t.Run(string(c), func(t *testing.T) {
			t.Parallel()
			layer := layerOf(t, raw)
			if c == compression.None {
				layer = uncompressed{layer}
			} else {
				var err error
				layer, err = tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil },
					tarball.WithCompression(c), tarball.WithMediaType(types.OCILayerZStd))
				if err != nil {
					t.Fatal(err)
				}
			}
			img, err := mutate.AppendLayers(empty.Image, layer)
			if err != nil {
				t.Fatal(err)
			}
			got := mustPull(t, openStore(t, t.TempDir(), Options{}), "oci:"+writeLayout(t, map[string]v1.Image{"x": img}))
			if diff := cmp.Diff(map[string]string{"a": "file 644 7000 bytes"}, imagetest.Listing(t, got.Layers[0].Dir)); diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
		})
	}
}

// uncompressed presents a layer as stored without compression.
type uncompressed struct{ v1.Layer }

func (u uncompressed) Compressed() (io.ReadCloser, error) { return u.Uncompressed() }

func (u uncompressed) Digest() (v1.Hash, error) { return u.DiffID() }

func (u uncompressed) Size() (int64, error) {
	r, err := u.Uncompressed()
	if err != nil {
		return 0, err
	}
	return io.Copy(io.Discard, r)
}

func (u uncompressed) MediaType() (types.MediaType, error) { return types.OCIUncompressedLayer, nil }

func TestMirror(t *testing.T) {
	t.Parallel()
	mirror := writeLayout(t, map[string]v1.Image{
		"debian:12":                    sample(t),
		"ghcr.io/team/tool:v1":         sample(t),
		"docker.io/library/busybox:1":  sample(t),
		"localhost:1/never/asked:v1":   sample(t),
		"debian:11-but-not-the-digest": imageOf(t, v1.Config{}, layerTar(t, file("x", ""))),
	})
	digest, err := sample(t).Digest()
	if err != nil {
		t.Fatal(err)
	}
	opts := Options{Mirrors: []string{filepath.Join(t.TempDir(), "missing"), mirror}, Offline: true}
	s := openStore(t, t.TempDir(), opts)
	for _, ref := range []string{
		"debian:12", "docker.io/library/debian:12", "index.docker.io/library/debian:12", "library/debian:12",
		"busybox:1", "ghcr.io/team/tool:v1", "localhost:1/never/asked:v1", "debian@" + digest.String(),
	} {
		t.Run(ref, func(t *testing.T) {
			t.Parallel()
			checkSample(t, mustPull(t, s, ref))
		})
	}
	for _, ref := range []string{"debian:13", "debian", "team/tool:v1"} {
		_, err := s.Pull(t.Context(), ref, nil)
		if !errors.Is(err, sandbox.ErrImageNotFound) {
			t.Errorf("pulling %q: got %v, want %v", ref, err, sandbox.ErrImageNotFound)
			continue
		}
		for _, part := range []string{ref, mirror, "missing", "offline"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("pulling %q: the error %q does not say %q", ref, err, part)
			}
		}
	}
}

func TestMirrorChangesAreSeen(t *testing.T) {
	t.Parallel()
	first := imageOf(t, v1.Config{}, layerTar(t, file("first", "")))
	second := imageOf(t, v1.Config{}, layerTar(t, file("second", "")))
	mirror := writeLayout(t, map[string]v1.Image{"x:1": first})
	s := openStore(t, t.TempDir(), Options{Mirrors: []string{mirror}, Offline: true})
	a := mustPull(t, s, "x:1")
	p, err := ocilayout.FromPath(mirror)
	if err != nil {
		t.Fatal(err)
	}
	err = p.ReplaceImage(second, func(d v1.Descriptor) bool { return d.Annotations[source.AnnotationRef] == "x:1" },
		ocilayout.WithAnnotations(map[string]string{source.AnnotationRef: "x:1"}))
	if err != nil {
		t.Fatal(err)
	}
	b := mustPull(t, s, "x:1")
	if a.ID == b.ID {
		t.Error("the image is still the old one")
	}
}

func index(t *testing.T, platforms map[string]v1.Image) v1.ImageIndex {
	t.Helper()
	idx := v1.ImageIndex(empty.Index)
	for p, img := range platforms {
		platform, err := v1.ParsePlatform(p)
		if err != nil {
			t.Fatal(err)
		}
		idx = mutate.AppendManifests(idx, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platform}})
	}
	return idx
}

func withPlatform(t *testing.T, img v1.Image, arch string) v1.Image {
	t.Helper()
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", arch
	img, err = mutate.ConfigFile(img, file)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestPlatforms(t *testing.T) {
	t.Parallel()
	host := newRegistryServer(t)
	pushIndex := func(ref string, idx v1.ImageIndex) {
		t.Helper()
		n, err := name.ParseReference(ref)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.WriteIndex(n, idx); err != nil {
			t.Fatal(err)
		}
	}
	foreign := withPlatform(t, imageOf(t, v1.Config{}, layerTar(t, file("foreign", ""))), "s390x")
	pushIndex(host+"/both", index(t, map[string]v1.Image{"linux/s390x": foreign, testPlatform().String(): sample(t)}))
	pushIndex(host+"/foreign", index(t, map[string]v1.Image{"linux/s390x": foreign, "linux/arm/v7": foreign, "unknown/unknown": foreign}))
	push(t, host+"/single-foreign", foreign)
	s := openStore(t, t.TempDir(), Options{})

	checkSample(t, mustPull(t, s, host+"/both"))
	for _, ref := range []string{host + "/foreign", host + "/single-foreign"} {
		_, err := s.Pull(t.Context(), ref, nil)
		pe, ok := errors.AsType[*source.PlatformError](err)
		if !ok || !errors.Is(err, sandbox.ErrImageNotFound) {
			t.Fatalf("pulling %q: got %v, want a *PlatformError", ref, err)
		}
		if pe.Want != testPlatform().String() || pe.Have[len(pe.Have)-1] != "linux/s390x" {
			t.Errorf("pulling %q: want %q have %q", ref, pe.Want, pe.Have)
		}
	}
	s390 := openStore(t, t.TempDir(), Options{Architecture: "s390x"})
	if img := mustPull(t, s390, host+"/foreign"); len(img.Layers) != 1 {
		t.Errorf("%d layers, want 1", len(img.Layers))
	}
}

func TestNotFound(t *testing.T) {
	t.Parallel()
	host := newRegistryServer(t)
	push(t, host+"/there:v1", sample(t))
	many := writeLayout(t, map[string]v1.Image{"a:1": sample(t), "b:1": imageOf(t, v1.Config{}, layerTar(t, file("x", "")))})
	archivePath := saveArchive(t, map[string]v1.Image{"a:1": sample(t)})
	s := openStore(t, t.TempDir(), Options{})
	for _, tc := range []struct {
		ref      string
		says     string
		notFound bool
	}{
		{host + "/there:v2", "registry " + host, true},
		{host + "/nowhere", "registry " + host, true},
		{"oci:/does/not/exist", "/does/not/exist", true},
		{"oci:" + many + ":c:1", "a:1", true},
		{"oci:" + many, "2 images", false},
		{"oci:", "path is missing", false},
		{"docker-archive:/does/not/exist.tar", "/does/not/exist.tar", true},
		{"docker-archive:" + archivePath + ":zzz", "a:1", true},
		{"docker-archive:" + many, "not a regular file", false},
		{"UPPER", "UPPER", false},
		{"", "reading image reference", false},
	} {
		_, err := s.Pull(t.Context(), tc.ref, nil)
		if err == nil || errors.Is(err, sandbox.ErrImageNotFound) != tc.notFound {
			t.Errorf("pulling %q: got %v, want not found: %t", tc.ref, err, tc.notFound)
			continue
		}
		if !strings.Contains(err.Error(), tc.says) {
			t.Errorf("pulling %q: %q does not say %q", tc.ref, err, tc.says)
		}
	}
}

func TestNotAnImage(t *testing.T) {
	t.Parallel()
	host := newRegistryServer(t)
	artifact := mutate.ConfigMediaType(sample(t), "application/vnd.cncf.helm.config.v1+json")
	push(t, host+"/chart", artifact)
	// As many layers as the config has diff ids is what makes an image.
	broken, err := mutate.AppendLayers(sample(t), static.NewLayer([]byte("x"), types.OCILayer))
	if err != nil {
		t.Fatal(err)
	}
	file, err := broken.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.RootFS.DiffIDs = file.RootFS.DiffIDs[:2]
	if broken, err = mutate.ConfigFile(broken, file); err != nil {
		t.Fatal(err)
	}
	push(t, host+"/broken", broken)
	s := openStore(t, t.TempDir(), Options{})
	if _, err := s.Pull(t.Context(), host+"/chart", nil); !errors.Is(err, source.ErrForeign) {
		t.Errorf("pulling a chart: got %v, want %v", err, source.ErrForeign)
	}
	if _, err := s.Pull(t.Context(), host+"/broken", nil); err == nil || !strings.Contains(err.Error(), "diff ids") {
		t.Errorf("pulling an image with a layer too many: got %v", err)
	}
}

// TestTwoNames: two names of one manifest in a layout are one image, of two
// manifests they are not.
func TestTwoNames(t *testing.T) {
	t.Parallel()
	img := sample(t)
	s := openStore(t, t.TempDir(), Options{})
	layout := writeLayout(t, map[string]v1.Image{"debian:12": img, "debian:bookworm-slim": img})
	checkSample(t, mustPull(t, s, "oci:"+layout))
	two := writeLayout(t, map[string]v1.Image{"debian:12": img, "other:1": imageOf(t, v1.Config{}, layerTar(t, file("x", "y")))})
	if _, err := s.Pull(t.Context(), "oci:"+two, nil); err == nil || !strings.Contains(err.Error(), "2 images that fit") {
		t.Errorf("two images: %v, want an error that asks for a name", err)
	}
	// A mirror too may know an image by a short and a full name.
	both := writeLayout(t, map[string]v1.Image{"debian:12": img, "docker.io/library/debian:12": img})
	mirrored := openStore(t, t.TempDir(), Options{Mirrors: []string{both}, Offline: true})
	checkSample(t, mustPull(t, mirrored, "debian:12"))
}
