package image

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	memregistry "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/source"
)

// flaky is a registry that is hostile or broken in front of a good one. handle
// reports whether it dealt with the request.
type flaky struct {
	next   http.Handler
	handle atomic.Pointer[func(w http.ResponseWriter, r *http.Request) bool]
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := f.handle.Load(); h != nil && (*h)(w, r) {
		return
	}
	f.next.ServeHTTP(w, r)
}

func newFlaky(t *testing.T) (f *flaky, host string) {
	t.Helper()
	f = &flaky{next: memregistry.New(memregistry.Logger(quiet()))}
	srv := httptest.NewUnstartedServer(f)
	srv.Config.ErrorLog = quiet()
	srv.Start()
	t.Cleanup(srv.Close)
	return f, strings.TrimPrefix(srv.URL, "http://")
}

func isLayer(r *http.Request, img v1.Image) bool {
	layers, err := img.Layers()
	if err != nil {
		return false
	}
	for _, l := range layers {
		if d, err := l.Digest(); err == nil && strings.HasSuffix(r.URL.Path, "/blobs/"+d.String()) {
			return r.Method == http.MethodGet
		}
	}
	return false
}

func isManifest(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/")
}

// bigImage has one layer that does not compress, so that it can be cut.
func bigImage(t *testing.T) v1.Image {
	t.Helper()
	var content strings.Builder
	for i := range 40_000 {
		content.WriteString(blob.DigestOf([]byte(strconv.Itoa(i))))
	}
	return imageOf(t, v1.Config{}, layerTar(t, file("big", content.String())))
}

func layerBytes(t *testing.T, img v1.Image) []byte {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	r, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func hijack(t *testing.T, w http.ResponseWriter, send []byte) {
	t.Helper()
	conn, buf, err := w.(http.Hijacker).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = buf.Write(send) // the client may be gone
	_ = buf.Flush()
	_ = conn.Close()
}

func TestRegistryFaults(t *testing.T) {
	t.Parallel()
	img := bigImage(t)
	raw := layerBytes(t, img)
	for _, tc := range []struct {
		name string
		// fault deals with the n-th request that it concerns, from 1.
		fault  func(t *testing.T, n int, w http.ResponseWriter, r *http.Request) bool
		waited []time.Duration // the first waits; nil means that none are checked
		check  func(t *testing.T, err error)
	}{
		{
			name: "429 with Retry-After, then recovering",
			fault: func(_ *testing.T, n int, w http.ResponseWriter, r *http.Request) bool {
				if n > 2 || !isManifest(r) {
					return false
				}
				w.Header().Set("Retry-After", strconv.Itoa(10*n))
				w.WriteHeader(http.StatusTooManyRequests)
				return true
			},
			waited: []time.Duration{10 * time.Second, 20 * time.Second},
		},
		{
			name: "Retry-After is bounded",
			fault: func(_ *testing.T, n int, w http.ResponseWriter, r *http.Request) bool {
				if n > 1 || !isManifest(r) {
					return false
				}
				w.Header().Set("Retry-After", "86400")
				w.WriteHeader(http.StatusTooManyRequests)
				return true
			},
			waited: []time.Duration{time.Minute},
		},
		{
			name: "429 for ever",
			fault: func(_ *testing.T, _ int, w http.ResponseWriter, r *http.Request) bool {
				w.WriteHeader(http.StatusTooManyRequests)
				return true
			},
			check: wantError[*source.UnreachableError],
		},
		{
			name: "503 on a layer, then recovering",
			fault: func(_ *testing.T, n int, w http.ResponseWriter, r *http.Request) bool {
				if n > 3 || !isLayer(r, img) {
					return false
				}
				w.WriteHeader(http.StatusServiceUnavailable)
				return true
			},
			waited: []time.Duration{time.Second, 2 * time.Second, 4 * time.Second},
		},
		{
			name: "500 for ever",
			fault: func(_ *testing.T, _ int, w http.ResponseWriter, r *http.Request) bool {
				w.WriteHeader(http.StatusInternalServerError)
				return isLayer(r, img)
			},
			check: wantError[*source.UnreachableError],
		},
		{
			name: "connection reset before the answer",
			fault: func(t *testing.T, n int, w http.ResponseWriter, r *http.Request) bool {
				if n > 2 || !isManifest(r) {
					return false
				}
				hijack(t, w, nil)
				return true
			},
		},
		{
			name: "connection reset mid-blob, every time later, resumed",
			fault: func(t *testing.T, n int, w http.ResponseWriter, r *http.Request) bool {
				if !isLayer(r, img) {
					return false
				}
				from := 0
				if h := r.Header.Get("Range"); h != "" {
					if _, err := fmt.Sscanf(h, "bytes=%d-", &from); err != nil {
						t.Errorf("range is %q: %v", h, err)
					}
				}
				if want := (n - 1) * len(raw) / 4; from != want {
					t.Errorf("request %d begins at %d, want %d", n, from, want)
				}
				head := "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes %d-%d/%d\r\nContent-Length: %d\r\n\r\n"
				if from == 0 {
					head = strings.Replace(head, "206 Partial Content", "200 OK", 1)
				}
				end := n * len(raw) / 4
				hijack(t, w, append(fmt.Appendf(nil, head, from, len(raw)-1, len(raw), len(raw)-from), raw[from:end]...))
				return true
			},
		},
		{
			name: "connection reset mid-blob, registry without ranges",
			fault: func(t *testing.T, n int, w http.ResponseWriter, r *http.Request) bool {
				if !isLayer(r, img) {
					return false
				}
				r.Header.Del("Range")
				if n > 2 {
					_, _ = w.Write(raw)
					return true
				}
				head := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(raw))
				hijack(t, w, append(head, raw[:len(raw)/2]...))
				return true
			},
		},
		{
			name: "range answered with 416",
			fault: func(t *testing.T, n int, w http.ResponseWriter, r *http.Request) bool {
				switch {
				case !isLayer(r, img) || n > 2:
					return false
				case n == 2:
					w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
				default:
					head := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(raw))
					hijack(t, w, append(head, raw[:len(raw)/2]...))
				}
				return true
			},
		},
		{
			name: "connection reset without progress",
			fault: func(t *testing.T, _ int, w http.ResponseWriter, r *http.Request) bool {
				if !isLayer(r, img) {
					return false
				}
				hijack(t, w, nil)
				return true
			},
			check: wantError[*source.UnreachableError],
		},
		{
			name: "truncated blob",
			fault: func(_ *testing.T, _ int, w http.ResponseWriter, r *http.Request) bool {
				if !isLayer(r, img) {
					return false
				}
				_, _ = w.Write(raw[:len(raw)/2])
				return true
			},
			check: wantError[*blob.DigestError],
		},
		{
			name: "blob too long",
			fault: func(_ *testing.T, _ int, w http.ResponseWriter, r *http.Request) bool {
				if !isLayer(r, img) {
					return false
				}
				_, _ = w.Write(append(bytes.Clone(raw), "more"...))
				return true
			},
			check: wantError[*blob.DigestError],
		},
		{
			name: "wrong digest once",
			fault: func(_ *testing.T, n int, w http.ResponseWriter, r *http.Request) bool {
				if !isLayer(r, img) || n > 1 {
					return false
				}
				_, _ = w.Write(flipped(raw))
				return true
			},
		},
		{
			name: "wrong digest",
			fault: func(_ *testing.T, _ int, w http.ResponseWriter, r *http.Request) bool {
				if !isLayer(r, img) {
					return false
				}
				_, _ = w.Write(flipped(raw))
				return true
			},
			check: wantError[*blob.DigestError],
		},
		{
			name: "wrong config",
			fault: func(_ *testing.T, _ int, w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") || isLayer(r, img) {
					return false
				}
				_, _ = io.WriteString(w, `{"os":"linux"}`)
				return true
			},
			check: wantError[*blob.DigestError],
		},
		{
			name: "layer missing",
			fault: func(_ *testing.T, _ int, w http.ResponseWriter, r *http.Request) bool {
				if !isLayer(r, img) {
					return false
				}
				w.WriteHeader(http.StatusNotFound)
				return true
			},
			check: wantError[*NotFoundError],
		},
		{
			name: "unauthorised",
			fault: func(_ *testing.T, _ int, w http.ResponseWriter, r *http.Request) bool {
				if !isManifest(r) {
					return false
				}
				w.WriteHeader(http.StatusUnauthorized)
				return true
			},
			check: wantError[*source.UnauthorizedError],
		},
		{
			name: "denied",
			fault: func(_ *testing.T, _ int, w http.ResponseWriter, r *http.Request) bool {
				if !isManifest(r) {
					return false
				}
				w.WriteHeader(http.StatusForbidden)
				_, _ = io.WriteString(w, `{"errors":[{"code":"DENIED","message":"requested access is denied"}]}`)
				return true
			},
			check: wantError[*source.UnauthorizedError],
		},
		{
			name: "endless manifest",
			fault: func(_ *testing.T, _ int, w http.ResponseWriter, r *http.Request) bool {
				if !isManifest(r) {
					return false
				}
				for range 2 * source.MaxManifest / 1024 {
					if _, err := w.Write(make([]byte, 1024)); err != nil {
						break
					}
				}
				return true
			},
			check: func(t *testing.T, err error) {
				if err == nil || !strings.Contains(err.Error(), "more than") {
					t.Errorf("got %v, want that the manifest is too long", err)
				}
			},
		},
		{
			name: "redirect away from TLS",
			fault: func(_ *testing.T, _ int, w http.ResponseWriter, r *http.Request) bool {
				if !isLayer(r, img) {
					return false
				}
				http.Redirect(w, r, "http://registry.invalid/blob", http.StatusTemporaryRedirect)
				return true
			},
			check: func(t *testing.T, err error) {
				if !errors.Is(err, source.ErrPlain) {
					t.Errorf("got %v, want %v", err, source.ErrPlain)
				}
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f, host := newFlaky(t)
			push(t, host+"/img", img)
			s := openStore(t, t.TempDir(), Options{})
			var waited []time.Duration
			noSleep(s, &waited)
			var concerned atomic.Int64
			handle := func(w http.ResponseWriter, r *http.Request) bool {
				// Counted before the answer: the client may be back before
				// this returns.
				done := tc.fault(t, int(concerned.Add(1)), w, r)
				if !done {
					concerned.Add(-1)
				}
				return done
			}
			f.handle.Store(&handle)
			got, err := s.Pull(t.Context(), host+"/img", nil)
			if tc.check != nil {
				if err == nil {
					t.Fatal("the pull succeeded")
				}
				tc.check(t, err)
				if !strings.Contains(err.Error(), host+"/img") {
					t.Errorf("the error %q does not name the image", err)
				}
				if hint, ok := err.(interface{ Hint() string }); ok && hint.Hint() == "" {
					t.Error("the hint is empty")
				}
				assertNoLeftovers(t, s)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Layers) != 1 || got.Layers[0].Notes.Bytes != 40_000*71 {
				t.Errorf("layers are %+v, want one of all content", got.Layers)
			}
			if tc.waited != nil && fmt.Sprint(waited) != fmt.Sprint(tc.waited) {
				t.Errorf("waited %v, want %v", waited, tc.waited)
			}
			assertNoLeftovers(t, s)
		})
	}
}

func flipped(raw []byte) []byte {
	out := bytes.Clone(raw)
	out[len(out)/2] ^= 0xff
	return out
}

func wantError[E error](t *testing.T, err error) {
	t.Helper()
	if _, ok := errors.AsType[E](err); !ok {
		var want E
		t.Errorf("got %T %v, want a %T", err, err, want)
	}
}

// assertNoLeftovers: whatever happened, nothing but whole layers is in the
// store, and nothing in the work directory. Layers are sealed while their image
// is used, and that writes.
func assertNoLeftovers(t *testing.T, s *Store) {
	t.Helper()
	s.layers.sealer.wg.Wait()
	work, err := os.ReadDir(s.disk.session.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range work {
		t.Errorf("%s is left in the work directory", e.Name())
	}
	layers, err := filepath.Glob(filepath.Join(s.disk.dir, "layers", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		if _, err := os.Stat(filepath.Join(l, "layer.json")); err != nil {
			t.Errorf("layer without description: %v", err)
		}
	}
}
