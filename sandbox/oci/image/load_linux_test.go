package image

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/imagetest"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/source"
)

// distribution is an image of 200 MB in four layers, as a distribution with a
// language and its packages has: some 20,000 small files, some libraries.
func distribution(tb testing.TB) v1.Image {
	tb.Helper()
	words := imagetest.Text(rand.New(rand.NewPCG(3, 4)), 8<<20)
	rng := rand.New(rand.NewPCG(5, 6))
	cut := func(size int) string {
		from := rng.IntN(len(words) - size)
		return words[from : from+size]
	}
	layers := make([][]byte, 4)
	for l := range layers {
		var entries []entry
		for d := range 250 {
			name := fmt.Sprintf("usr/lib/part%d/package-%d", l, d)
			entries = append(entries, dir(name, 0o755))
			for f := range 20 {
				entries = append(entries, file(fmt.Sprintf("%s/file-%d.py", name, f), cut(500+rng.IntN(9000))))
			}
		}
		for f := range 5 {
			entries = append(entries, file(fmt.Sprintf("usr/lib/part%d/lib%d.so", l, f), cut(5<<20)))
		}
		layers[l] = layerTar(tb, entries...)
	}
	return imageOf(tb, v1.Config{}, layers...)
}

// dockerArchive writes an image as docker save does: layers uncompressed.
func dockerArchive(tb testing.TB, tag string, img v1.Image) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "image.tar")
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	tw := tar.NewWriter(f)
	put := func(name string, data []byte) {
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: 0o644}); err != nil {
			tb.Fatal(err)
		}
		if _, err := tw.Write(data); err != nil {
			tb.Fatal(err)
		}
	}
	config, err := img.RawConfigFile()
	if err != nil {
		tb.Fatal(err)
	}
	entry := source.ArchiveImage{Config: "config.json", RepoTags: []string{tag}}
	put(entry.Config, config)
	layers, err := img.Layers()
	if err != nil {
		tb.Fatal(err)
	}
	for i, l := range layers {
		r, err := l.Uncompressed()
		if err != nil {
			tb.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			tb.Fatal(err)
		}
		name := fmt.Sprintf("%d/layer.tar", i)
		put(name, data)
		entry.Layers = append(entry.Layers, name)
	}
	list, err := json.Marshal([]source.ArchiveImage{entry})
	if err != nil {
		tb.Fatal(err)
	}
	put("manifest.json", list)
	if err := tw.Close(); err != nil {
		tb.Fatal(err)
	}
	return path
}

// gzippedArchive writes an image with its layers compressed.
func gzippedArchive(tb testing.TB, tag string, img v1.Image) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "image.tar")
	n, err := name.NewTag(tag)
	if err != nil {
		tb.Fatal(err)
	}
	if err := tarball.WriteToFile(path, n, img); err != nil {
		tb.Fatal(err)
	}
	return path
}

// engineLoad is docker load without its client program.
type engineLoad struct {
	base   string
	client *http.Client
}

func newEngineLoad(tb testing.TB) *engineLoad {
	tb.Helper()
	host := need.Docker(tb)
	network, address, _ := strings.Cut(host, "://")
	need.That(tb, "docker", network == "unix", "needs an engine on a unix socket")
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", address)
	}
	return &engineLoad{"http://engine", &http.Client{Transport: &http.Transport{DialContext: dial}}}
}

func (e *engineLoad) do(tb testing.TB, method, path string, body io.Reader) string {
	tb.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(tb.Context()), method, e.base+path, body)
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-tar")
	res, err := e.client.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		tb.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || bytes.Contains(text, []byte(`"error"`)) {
		tb.Fatalf("%s %s: %s: %s", method, path, res.Status, text)
	}
	return string(text)
}

// load measures how long the engine takes, and removes the image again.
func (e *engineLoad) load(tb testing.TB, archive, tag string) time.Duration {
	tb.Helper()
	f, err := os.Open(archive)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	begin := time.Now()
	e.do(tb, http.MethodPost, "/images/load?quiet=1", f)
	took := time.Since(begin)
	e.do(tb, http.MethodDelete, "/images/"+url.PathEscape(tag)+"?force=1", nil)
	return took
}

// BenchmarkLoad takes an image of 200 MB from an archive to an unpacked image,
// with docker load of the same archive in turn.
func BenchmarkLoad(b *testing.B) {
	const tag = "proctor-load-bench:1"
	img := distribution(b)
	for kind, write := range map[string]func(testing.TB, string, v1.Image) string{"tar": dockerArchive, "gzip": gzippedArchive} {
		b.Run(kind, func(b *testing.B) {
			engine := newEngineLoad(b)
			archive := write(b, tag, img)
			top := b.TempDir()
			var ours, sealed, theirs []time.Duration
			for b.Loop() {
				unix.Sync() // what others wrote is not ours to wait for
				store := filepath.Join(top, "store")
				begin := time.Now()
				s, err := Open(store, Options{})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.Pull(b.Context(), "docker-archive:"+archive, nil); err != nil {
					b.Fatal(err)
				}
				ours = append(ours, time.Since(begin))
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				sealed = append(sealed, time.Since(begin))
				if err := os.RemoveAll(store); err != nil {
					b.Fatal(err)
				}
				unix.Sync()
				theirs = append(theirs, engine.load(b, archive, tag))
			}
			p, d := median(ours), median(theirs)
			b.ReportMetric(float64(median(sealed).Milliseconds()), "proctor-on-disk-ms")
			b.ReportMetric(float64(p.Milliseconds()), "proctor-ms")
			b.ReportMetric(float64(d.Milliseconds()), "docker-load-ms")
			b.ReportMetric(float64(d)/float64(p), "times-faster")
		})
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
