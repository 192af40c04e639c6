package compose_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/compose"
	"github.com/proctor-run/proctor/sandbox/internal/engine"
	"github.com/proctor-run/proctor/sandbox/internal/enginetest"
)

func newProjectEngine(t testing.TB) (*enginetest.Engine, *compose.Engine) {
	t.Helper()
	e, host := enginetest.New(t)
	return e, projectEngineAt(t, host)
}

// projectEngineAt is an engine at an address.
func projectEngineAt(t testing.TB, host string) *compose.Engine {
	t.Helper()
	api, err := client.New(client.WithHost(host), client.WithAPIVersion("1.41"))
	if err != nil {
		t.Fatal(err)
	}
	return engineOf(t, api)
}

// engineOf has images and a service main that do no more than the engine is asked for.
func engineOf(t testing.TB, api *client.Client) *compose.Engine {
	t.Helper()
	subnets, err := compose.ParseSubnets("")
	if err != nil {
		t.Fatal(err)
	}
	return &compose.Engine{
		API: api, Images: images{api}, Environ: []string{"HOST_VAR=host"}, Subnets: subnets, Now: time.Now,
		Main: func(sandbox.Spec) compose.Main { return service{api} },
	}
}

// images are there, or are made by asking.
type images struct{ api *client.Client }

func (i images) Built(ctx context.Context, build compose.Build, _ func(string)) (compose.Image, error) {
	name := build.Dockerfile
	if name == "" {
		name = "Dockerfile"
	}
	if _, err := os.Stat(filepath.Join(build.Dir, name)); err != nil {
		return compose.Image{}, err
	}
	return i.Inspect(ctx, "proctor-build:1")
}

func (i images) Pulled(ctx context.Context, ref, _ string, _ func(string)) (compose.Image, error) {
	return i.Inspect(ctx, ref)
}

func (i images) Pull(ctx context.Context, ref, _ string, _ func(string)) error {
	_, err := i.Inspect(ctx, ref)
	return err
}

func (i images) Inspect(ctx context.Context, ref string) (compose.Image, error) {
	r, err := i.api.ImageInspect(ctx, ref)
	return compose.Image{Ref: ref, ID: r.ID}, err
}

func (i images) Tag(ctx context.Context, source, target string) error {
	_, err := i.api.ImageTag(ctx, client.ImageTagOptions{Source: source, Target: target})
	return err
}

// service is a main that the engine starts as it is.
type service struct{ api *client.Client }

func (service) Prepare(context.Context, *client.ContainerCreateOptions, compose.Image) error {
	return nil
}

func (service) Created(context.Context, string) error { return nil }

func (service) Started(context.Context, string) error { return nil }

func (service) Ended() (ended bool, code int, output string) { return false, 0, "" }

func (s service) Container(id, _ string) compose.Container { return container{api: s.api, id: id} }

func (service) Abort() {}

// container can only be removed.
type container struct {
	compose.Container
	api *client.Client
	id  string
}

func (c container) ID() string { return c.id }

func (c container) Destroy(ctx context.Context) error { return engine.Remove(ctx, c.api, c.id) }

// specOf is a project of the files in a new directory, whose main is an image.
func specOf(t testing.TB, files map[string]string) sandbox.Spec {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	self, err := procid.Self()
	if err != nil {
		t.Fatal(err)
	}
	return sandbox.Spec{
		Name: t.Name(), Image: sandbox.Image{Ref: "img"}, Labels: sandbox.Labels{Job: "test", Trial: "trial", Owner: self},
		Compose: &sandbox.Compose{Project: "project", Dir: dir, Files: []string{filepath.Join(dir, "docker-compose.yaml")}},
	}
}

// up creates a project, which is destroyed at the end of the test.
func up(t testing.TB, e *compose.Engine, spec sandbox.Spec) *compose.Project {
	t.Helper()
	p, err := e.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		if err := p.Destroy(ctx); err != nil {
			t.Error(err)
		}
	})
	return p
}
