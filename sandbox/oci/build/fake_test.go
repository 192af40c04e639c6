package build

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/image"
)

// bench is a builder on a store and a runner of the tests' own. Its sandboxes
// run nothing: they note what they are asked for.
type bench struct {
	*Builder
	t      testing.TB
	images map[string]image.Image // by reference

	mu       sync.Mutex // guards what follows
	made     map[string]image.Image
	commits  int
	caches   []string // that were opened, by their ids
	steps    []Step
	commands []sandbox.Command
	placed   []string // entries of uploads: "name mode uid:gid content"
	mounts   []string // what is mounted, as sandbox.Mount's target and content
	// exec, when not nil, stands for the commands; root is the upper directory.
	exec  func(root string, cmd sandbox.Command) (int, error)
	stubs bool // make what runtimes make to mount on
}

func newBench(t testing.TB) *bench {
	b := &bench{t: t, images: map[string]image.Image{}, made: map[string]image.Image{}}
	b.Builder = New(b, b)
	b.addImage("debian", image.Config{Env: []string{"PATH=/bin", "BASE=yes"}}, map[string]string{
		"etc/passwd": "root:x:0:0::/root:/bin/sh\nagent:x:1000:1001::/home:/bin/sh\n", "etc/group": "root:x:0:\nstaff:x:50:\n",
		"usr/bin/": "", "bin ->": "usr/bin", "file": "old", "dir/": "", "run/": "", "var/run ->": "/run", "etc/link ->": "/file",
	})
	return b
}

// addImage makes an image of one layer. Names that end in / are directories,
// in " ->" links.
func (b *bench) addImage(ref string, config image.Config, files map[string]string) image.Image {
	b.t.Helper()
	dir := b.t.TempDir()
	fill(b.t, dir, files)
	img := image.Image{Ref: ref, ID: "id of " + ref, Config: config, Layers: []image.Layer{{Dir: dir}}}
	b.images[ref] = img
	return img
}

func fill(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, strings.TrimSuffix(name, " ->"))
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch {
		case err != nil:
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		case strings.HasSuffix(name, " ->"):
			err = os.Symlink(text, path)
		default:
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// do builds a Dockerfile with a context.
func (b *bench) do(dockerfile string, files map[string]string) (image.Image, error) {
	b.t.Helper()
	dir := b.t.TempDir()
	fill(b.t, dir, files)
	fill(b.t, dir, map[string]string{"Dockerfile": dockerfile})
	return b.Build(b.t.Context(), Request{ContextDir: dir, Name: "task"})
}

func (b *bench) Pull(_ context.Context, ref string, _ func(string)) (image.Image, error) {
	img, ok := b.images[ref]
	if !ok {
		return img, &image.NotFoundError{Ref: ref}
	}
	return img, nil
}

func (b *bench) OpenCache(ctx context.Context, id string, sharing image.Sharing) (*image.Cache, error) {
	b.mu.Lock()
	b.caches = append(b.caches, id)
	b.mu.Unlock()
	store, err := image.Open(b.t.TempDir(), image.Options{Offline: true})
	if err != nil {
		return nil, err
	}
	b.t.Cleanup(func() {
		if err := store.Close(); err != nil {
			b.t.Error(err)
		}
	})
	return store.OpenCache(ctx, id, sharing)
}

func (b *bench) Commit(_ context.Context, base image.Image, upper string, c image.Changes) (image.Image, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.commits++
	img := image.Image{ID: fmt.Sprintf("id %d", b.commits), Layers: slices.Clone(base.Layers), Config: base.Config}
	if upper == "" {
		img.Config = image.Config{
			Env: c.Env, User: c.User, Workdir: c.Workdir, Shell: c.Shell, Entrypoint: c.Entrypoint, Cmd: c.Cmd, Labels: c.Labels,
		}
		return img, nil
	}
	dir := filepath.Join(b.t.TempDir(), "layer")
	img.Layers = append(img.Layers, image.Layer{Dir: dir})
	return img, os.Rename(upper, dir)
}

func (b *bench) Make(ctx context.Context, ref string, fresh bool, progress func(string),
	produce func(context.Context, func(string)) (image.Image, error),
) (image.Image, error) {
	b.mu.Lock()
	img, ok := b.made[ref]
	b.mu.Unlock()
	if ok && !fresh {
		return img, nil
	}
	img, err := produce(ctx, progress)
	if err == nil {
		b.mu.Lock()
		b.made[ref] = img
		b.mu.Unlock()
	}
	return img, err
}

func (b *bench) Step(ctx context.Context, step Step, work func(context.Context, sandbox.Sandbox) error, keep func(context.Context, string) error) error {
	b.mu.Lock()
	b.steps = append(b.steps, step)
	b.mu.Unlock()
	upper := filepath.Join(b.t.TempDir(), "upper")
	if err := os.Mkdir(upper, 0o755); err != nil {
		return err
	}
	if b.stubs {
		if err := makeStubs(upper, step.Base); err != nil {
			return err
		}
	}
	if step.Mounts != nil {
		mounts, err := step.Mounts(b.t.TempDir())
		if err != nil {
			return err
		}
		for _, m := range mounts {
			data, _ := os.ReadFile(m.Source)
			b.mounts = append(b.mounts, fmt.Sprintf("%s %t %s", m.Target, m.ReadOnly, data))
		}
	}
	if err := work(ctx, &place{bench: b, root: upper}); err != nil {
		return err
	}
	return keep(ctx, upper)
}

// place is the sandbox of a step.
type place struct {
	*bench
	root string
}

func (p *place) Exec(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	p.mu.Lock()
	p.commands = append(p.commands, cmd)
	p.mu.Unlock()
	if p.exec == nil {
		return sandbox.ExitStatus{}, ctx.Err()
	}
	code, err := p.exec(p.root, cmd)
	return sandbox.ExitStatus{Code: code}, err
}

func (p *place) Upload(_ context.Context, dir string, archive io.Reader) error {
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(h.Name, "/")
		path := filepath.Join(p.root, dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		text := string(data)
		switch h.Typeflag {
		case tar.TypeDir:
			name, err = name+"/", os.MkdirAll(path, 0o755)
		case tar.TypeSymlink:
			text, err = "-> "+h.Linkname, os.Symlink(h.Linkname, path)
		case tar.TypeLink:
			text, err = "= "+h.Linkname, nil
		default:
			err = os.WriteFile(path, data, 0o600)
		}
		if err != nil {
			return err
		}
		p.placed = append(p.placed, strings.TrimSpace(fmt.Sprintf("%s %o %d:%d %s", name, h.Mode, h.Uid, h.Gid, text)))
	}
}

func (p *place) ID() string                                                  { return "place" }
func (p *place) Mark(context.Context) (sandbox.Mark, error)                  { return "", nil }
func (p *place) KillTree(context.Context, sandbox.Mark, time.Duration) error { return nil }
func (p *place) Download(context.Context, string, io.Writer) error           { return sandbox.ErrNotExist }
func (p *place) Destroy(context.Context) error                               { return nil }

var _ sandbox.Sandbox = (*place)(nil)
