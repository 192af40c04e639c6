package layer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/layer"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

const prefix = "/installed-agent/pi"

var debian, alpine = layer.Image{ID: "ref debian", Name: "debian"}, layer.Image{ID: "ref alpine", Name: "alpine"}

// workshop is a store with a backend on which its layers are built.
type workshop struct {
	*layer.Store
	backend *fake.Backend
	in      *agent.Installation
	found   string // the version that the image has; empty for none
	fails   error  // of the installation
	files   map[string]string
	built   atomic.Int64

	sandboxes atomic.Int64
}

func newWorkshop(t testing.TB) *workshop {
	t.Helper()
	w := &workshop{
		Store:   &layer.Store{Dir: filepath.Join(t.TempDir(), "agents"), Now: time.Now},
		backend: fake.New(fake.Config{Dir: t.TempDir()}),
		files:   map[string]string{"bin/pi": "the program"},
	}
	t.Cleanup(func() { fake.Verify(t, w.backend) })
	w.in = &agent.Installation{
		Agent: "pi", Version: "1.2", Digest: "d", Prefix: prefix, Hosts: []string{"registry.example"},
		Find: func(context.Context, agent.Env) (string, bool, error) { return w.found, w.found != "", nil },
		Install: func(_ context.Context, env agent.Env) (string, error) {
			w.built.Add(1)
			sb, _ := env.Sandbox.(*fake.Sandbox)
			for name, text := range w.files {
				if err := sb.WriteFile(prefix+"/"+name, []byte(text), 0o755); err != nil {
					return "", err
				}
			}
			if env.Downloads == "" || env.LogDir == "" {
				return "", errors.New("the environment lacks a directory")
			}
			return "1.2.3", w.fails
		},
	}
	return w
}

func (w *workshop) builder(change ...func(*layer.Builder)) layer.Builder {
	b := layer.Builder{Create: func(ctx context.Context) (sandbox.Sandbox, error) {
		return w.backend.Create(ctx, sandbox.Spec{Name: fmt.Sprint("s", w.sandboxes.Add(1))})
	}}
	for _, c := range change {
		c(&b)
	}
	return b
}

func (w *workshop) build(t testing.TB, image layer.Image, change ...func(*layer.Builder)) layer.Layer {
	t.Helper()
	l, err := w.Build(t.Context(), w.in, image, w.builder(change...))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// left are the names in the directory of the layers.
func (w *workshop) left(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.Dir, "layers"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestBuild: what was installed is there for its image, and for no other one.
func TestBuild(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	if _, found := w.Find(w.in, debian); found {
		t.Fatal("something is found in an empty store")
	}
	l := w.build(t, debian)
	if l.Agent != "pi" || l.Version != "1.2.3" || l.Asked != "1.2" || l.Prefix != prefix || l.Image != "debian" || l.Bytes != int64(len("the program")) || !l.Trusted || l.General {
		t.Errorf("built %+v", l)
	}
	if data, err := os.ReadFile(filepath.Join(l.Dir, "bin/pi")); err != nil || string(data) != "the program" {
		t.Errorf("its program is %q, %v", data, err)
	}
	again, found := w.Find(w.in, debian)
	if !found || !again.Trusted || again.General || again.Dir != l.Dir || again.Version != "1.2.3" {
		t.Errorf("found %+v, %t", again, found)
	}
	for what, in := range map[string]agent.Installation{
		"another version": {Agent: "pi", Version: "1.3", Digest: "d", Prefix: prefix},
		"another file":    {Agent: "pi", Version: "1.2", Digest: "e", Prefix: prefix},
		"another place":   {Agent: "pi", Version: "1.2", Digest: "d", Prefix: "/x"},
	} {
		if l, found := w.Find(&in, debian); found {
			t.Errorf("%s: found %+v", what, l)
		}
	}
	if l, found := w.Find(w.in, alpine); found {
		t.Errorf("another image has %+v", l)
	}
	w.build(t, debian)
	if n := w.built.Load(); n != 1 {
		t.Errorf("it was installed %d times", n)
	}
	w.build(t, debian, func(b *layer.Builder) { b.Anew = true })
	if n := w.built.Load(); n != 2 {
		t.Errorf("anew: it was installed %d times", n)
	}
	if names := w.left(t); len(names) != 1 {
		t.Errorf("there is %q", names)
	}
}

// TestBuildOfWhatTheImageHas: nothing is installed, and that is remembered; for all images
// it is installed all the same.
func TestBuildOfWhatTheImageHas(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.found = "0.9"
	if l := w.build(t, debian); l.Prefix != "" || l.Dir != "" || l.Version != "0.9" || !l.Trusted {
		t.Errorf("built %+v", l)
	}
	if l, found := w.Find(w.in, debian); !found || l.Prefix != "" || l.Version != "0.9" {
		t.Errorf("found %+v, %t", l, found)
	}
	if n := w.built.Load(); n != 0 {
		t.Errorf("it was installed %d times", n)
	}
	if l := w.build(t, layer.Image{Name: "debian"}); l.Prefix == "" || !l.General || l.Image != "" {
		t.Errorf("for all images: %+v", l)
	}
}

// TestGeneral: what serves all images is trusted in one where it was seen to work, and
// stands behind what was built in the image.
func TestGeneral(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.build(t, layer.Image{})
	l, found := w.Find(w.in, debian)
	if !found || !l.General || l.Trusted {
		t.Fatalf("found %+v, %t", l, found)
	}
	if err := w.Works(l, debian); err != nil {
		t.Fatal(err)
	}
	if l, _ := w.Find(w.in, debian); !l.Trusted || !l.General {
		t.Errorf("after it was seen to work: %+v", l)
	}
	if l, _ := w.Find(w.in, alpine); l.Trusted {
		t.Errorf("in another image: %+v", l)
	}
	own := w.build(t, debian)
	if l, _ := w.Find(w.in, debian); l.General || l.Dir != own.Dir {
		t.Errorf("with one of the image's own: %+v", l)
	}
	if err := w.Works(own, alpine); err != nil {
		t.Fatal(err)
	}
	if l, _ := w.Find(w.in, alpine); l.Trusted {
		t.Errorf("one image speaks for another: %+v", l)
	}
}

// TestFailedBuild: of a failed installation nothing is left, and the sandbox is gone.
func TestFailedBuild(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, c := range map[string]func(*workshop, *layer.Builder){
		"install": func(w *workshop, _ *layer.Builder) { w.fails = broken },
		"create": func(_ *workshop, b *layer.Builder) {
			b.Create = func(context.Context) (sandbox.Sandbox, error) { return nil, broken }
		},
		"find": func(w *workshop, _ *layer.Builder) {
			w.in.Find = func(context.Context, agent.Env) (string, bool, error) { return "", false, broken }
		},
		"download": func(w *workshop, _ *layer.Builder) {
			w.in.Install = func(context.Context, agent.Env) (string, error) { return "1", nil } // and leaves no prefix
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkshop(t)
			b := w.builder()
			c(w, &b)
			if _, err := w.Build(t.Context(), w.in, debian, b); err == nil || name != "download" && !errors.Is(err, broken) {
				t.Errorf("got %v", err)
			}
			if names := w.left(t); len(names) != 0 {
				t.Errorf("there is %q", names)
			}
			if _, found := w.Find(w.in, debian); found || w.backend.Live() != 0 {
				t.Errorf("found %t, %d sandboxes live", found, w.backend.Live())
			}
		})
	}
}

// TestCancelledBuild: the end of the context ends a build, and the wait for another one.
func TestCancelledBuild(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	begun := make(chan struct{})
	install := w.in.Install
	w.in.Install = func(ctx context.Context, env agent.Env) (string, error) {
		close(begun)
		<-ctx.Done()
		_, _ = install(ctx, env)
		return "", context.Cause(ctx)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var both sync.WaitGroup
	both.Go(func() {
		if _, err := w.Build(ctx, w.in, debian, w.builder()); !errors.Is(err, context.Canceled) {
			t.Errorf("the build: %v", err)
		}
	})
	<-begun
	both.Go(func() {
		if _, err := w.Build(ctx, w.in, debian, w.builder()); !errors.Is(err, context.Canceled) {
			t.Errorf("the wait: %v", err)
		}
	})
	cancel()
	both.Wait()
	if names := w.left(t); len(names) != 0 || w.backend.Live() != 0 {
		t.Errorf("there is %q, and %d sandboxes live", names, w.backend.Live())
	}
}

// TestConcurrentBuilds: of many who want one layer one builds it.
func TestConcurrentBuilds(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	other := &layer.Store{Dir: w.Dir, Now: time.Now} // as another process has it
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			s := w.Store
			if i%2 == 1 {
				s = other
			}
			if l, err := s.Build(t.Context(), w.in, debian, w.builder()); err != nil || l.Version != "1.2.3" {
				t.Errorf("got %+v, %v", l, err)
			}
		})
	}
	all.Wait()
	if n := w.built.Load(); n != 1 {
		t.Errorf("it was built %d times", n)
	}
}

// TestLeftovers: what a killed build left is in no list, and removed by the next build, of
// whatever; what another one is building is not.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.build(t, debian)
	key := w.left(t)[0]
	for _, name := range []string{".building-" + key + "~1", ".building-" + key + "~1.old", ".building-other-0123456789abcdef~2"} {
		if err := os.CopyFS(filepath.Join(w.Dir, "layers", name), os.DirFS(filepath.Join(w.Dir, "layers", key))); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := w.List(); err != nil || len(all) != 1 {
		t.Errorf("listed %+v, %v", all, err)
	}
	install := w.in.Install
	w.in.Install = func(ctx context.Context, env agent.Env) (string, error) {
		if names := w.left(t); len(names) != 2 || !strings.HasPrefix(names[0], ".building-") {
			t.Errorf("while it is built there is %q", names)
		}
		inner := *w.in
		inner.Version, inner.Install = "9", install
		if _, err := w.Build(ctx, &inner, debian, w.builder()); err != nil {
			t.Error(err)
		}
		return install(ctx, env)
	}
	w.build(t, alpine)
	if names := w.left(t); len(names) != 3 || slices.ContainsFunc(names, func(n string) bool { return n[0] == '.' }) {
		t.Errorf("at the end there is %q", names)
	}
}

// TestBrokenLayer: one that cannot be read is none, and is built again.
func TestBrokenLayer(t *testing.T) {
	t.Parallel()
	for name, breaking := range map[string]func(dir string) error{
		"no JSON":      func(dir string) error { return os.WriteFile(filepath.Join(dir, "layer.json"), []byte("{"), 0o644) },
		"another JSON": func(dir string) error { return os.WriteFile(filepath.Join(dir, "layer.json"), []byte("[1]"), 0o644) },
		"a directory": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "layer.json")), os.Mkdir(filepath.Join(dir, "layer.json"), 0o755))
		},
		"none":     func(dir string) error { return os.Remove(filepath.Join(dir, "layer.json")) },
		"no files": func(dir string) error { return os.RemoveAll(filepath.Join(dir, "root")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkshop(t)
			l := w.build(t, debian)
			if err := breaking(filepath.Dir(l.Dir)); err != nil {
				t.Fatal(err)
			}
			if l, found := w.Find(w.in, debian); found {
				t.Errorf("found %+v", l)
			}
			if all, err := w.List(); err != nil || len(all) != 0 {
				t.Errorf("listed %+v, %v", all, err)
			}
			w.build(t, debian)
			if _, found := w.Find(w.in, debian); !found || w.built.Load() != 2 {
				t.Errorf("found %t after %d builds", found, w.built.Load())
			}
		})
	}
}

// TestListAndRemove: all that is kept is listed, and removed by the agent's name or as a
// whole.
func TestListAndRemove(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	if all, err := w.List(); err != nil || all != nil {
		t.Errorf("of an empty store: %+v, %v", all, err)
	}
	if gone, err := w.Remove(""); err != nil || len(gone) != 0 {
		t.Errorf("removed of an empty store: %+v, %v", gone, err)
	}
	w.build(t, debian)
	w.build(t, layer.Image{})
	other := *w.in
	other.Agent, other.Version = "codex", ""
	w.in = &other
	w.build(t, alpine)
	var got []string
	all, err := w.List()
	for _, l := range all {
		got = append(got, fmt.Sprintf("%s %q %t", l.Agent, l.Image, l.General))
	}
	slices.Sort(got)
	if want := []string{`codex "alpine" false`, `pi "" true`, `pi "debian" false`}; err != nil || !slices.Equal(got, want) {
		t.Errorf("listed %q, %v", got, err)
	}
	if gone, err := w.Remove("pi"); err != nil || len(gone) != 2 || gone[0].Agent != "pi" {
		t.Errorf("removed %+v, %v", gone, err)
	}
	if gone, err := w.Remove("pi"); err != nil || len(gone) != 0 {
		t.Errorf("removed again: %+v, %v", gone, err)
	}
	if gone, err := w.Remove(""); err != nil || len(gone) != 1 || len(w.left(t)) != 0 {
		t.Errorf("removed all: %+v, %v; left %q", gone, err, w.left(t))
	}
}

// TestNetwork: an installation reaches its hosts alone where the backend can see to it.
func TestNetwork(t *testing.T) {
	t.Parallel()
	in := &agent.Installation{Hosts: []string{"a"}}
	if n := layer.Network(in, sandbox.Capabilities{Allowlist: true}); n.Mode != sandbox.NetworkAllowlist || !slices.Equal(n.Hosts, in.Hosts) {
		t.Errorf("got %+v", n)
	}
	if n := layer.Network(in, sandbox.Capabilities{}); n.Mode != sandbox.NetworkPublic || n.Hosts != nil {
		t.Errorf("without lists: %+v", n)
	}
	if n := layer.Network(&agent.Installation{}, sandbox.Capabilities{Allowlist: true}); n.Mode != sandbox.NetworkPublic {
		t.Errorf("without hosts: %+v", n)
	}
}
