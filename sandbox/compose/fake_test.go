package compose_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/compose"
	"github.com/proctor-run/proctor/sandbox/internal/engine"
)

// projectEngine is an engine that remembers what was made on it, as far as
// compose projects make anything.
type projectEngine struct {
	mu         sync.Mutex
	things     map[string]map[string]string // "container c1" to its labels
	bodies     map[string]json.RawMessage   // name of a container to what it was made of
	next       int
	calls      int
	failAt     int // the call that fails; 0 for none
	vanish     bool
	failed     string
	subnets    map[string]bool
	overlapped int // how many subnets are refused as taken
	state      string
}

func newProjectEngine(t testing.TB) (*projectEngine, *compose.Engine) {
	t.Helper()
	e := &projectEngine{
		things: map[string]map[string]string{}, bodies: map[string]json.RawMessage{}, subnets: map[string]bool{},
		state: `{"Status":"running","Running":true,"Health":{"Status":"healthy"}}`,
	}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	api, err := client.New(client.WithHost("tcp://"+strings.TrimPrefix(server.URL, "http://")), client.WithAPIVersion("1.41"))
	if err != nil {
		t.Fatal(err)
	}
	return e, engineOf(t, api)
}

// left lists what is there.
func (e *projectEngine) left() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.things))
}

// created is what a container was made of.
func (e *projectEngine) created(t testing.TB, name string) map[string]any {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	var body map[string]any
	if err := json.Unmarshal(e.bodies[name], &body); err != nil {
		t.Fatalf("container %q: %v", name, err)
	}
	return body
}

func (e *projectEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := versioned.ReplaceAllString(r.URL.Path, "")
	e.mu.Lock()
	defer e.mu.Unlock()
	if path == "/_ping" {
		w.Header().Set("Api-Version", "1.41")
		w.Header().Set("Ostype", "linux")
		return
	}
	e.calls++
	if e.calls == e.failAt {
		e.failed = r.Method + " " + path
		if e.vanish {
			vanish(w, r)
			return
		}
		answer(http.StatusInternalServerError, `{"message":"broken inside"}`)(w, r)
		return
	}
	kind, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch {
	case r.Method == http.MethodGet && (rest == "json" && kind != "images" || rest == ""):
		e.list(w, r, strings.TrimSuffix(kind, "s"))
	case r.Method == http.MethodPost && rest == "create":
		e.create(w, r, strings.TrimSuffix(kind, "s"))
	case kind == "images":
		e.image(w, r, rest)
	case r.Method == http.MethodDelete:
		delete(e.things, strings.TrimSuffix(kind, "s")+" "+rest)
		w.WriteHeader(http.StatusNoContent)
	case kind == "containers" && strings.HasSuffix(rest, "/json"):
		answer(200, `{"Id":"x","Name":"/x","State":`+e.state+`}`)(w, r)
	case kind == "volumes" && r.Method == http.MethodGet:
		answer(404, `{"message":"no such volume"}`)(w, r)
	default:
		answer(http.StatusNoContent, "")(w, r)
	}
}

func (e *projectEngine) list(w http.ResponseWriter, r *http.Request, kind string) {
	var filters map[string]map[string]bool
	_ = json.Unmarshal([]byte(r.URL.Query().Get("filters")), &filters)
	items := []map[string]any{}
	for thing, labels := range e.things {
		k, id, _ := strings.Cut(thing, " ")
		match := k == kind
		for want := range filters["label"] {
			name, value, hasValue := strings.Cut(want, "=")
			got, there := labels[name]
			match = match && there && (!hasValue || got == value)
		}
		if match && (filters["name"] == nil || filters["name"][id]) {
			items = append(items, map[string]any{"Id": id, "Name": id, "Names": []string{"/" + id}, "Labels": labels})
		}
	}
	var body any = items
	if kind == "volume" {
		body = map[string]any{"Volumes": items}
	}
	text, _ := json.Marshal(body)
	answer(200, string(text))(w, r)
}

func (e *projectEngine) create(w http.ResponseWriter, r *http.Request, kind string) {
	var raw json.RawMessage
	_ = json.NewDecoder(r.Body).Decode(&raw)
	var body struct {
		Name   string
		Labels map[string]string
		IPAM   struct{ Config []struct{ Subnet string } }
	}
	_ = json.Unmarshal(raw, &body)
	id := body.Name
	if kind == "container" {
		e.next++
		id = fmt.Sprintf("c%d", e.next)
		e.bodies[r.URL.Query().Get("name")] = raw
	}
	if kind == "network" && e.overlapped > 0 {
		e.overlapped--
		answer(403, `{"message":"Pool overlaps with other one on this address space"}`)(w, r)
		return
	}
	for _, c := range body.IPAM.Config {
		e.subnets[c.Subnet] = true
	}
	e.things[kind+" "+id] = body.Labels
	answer(201, fmt.Sprintf(`{"Id":%q,"Name":%q}`, id, id))(w, r)
}

// familiar shortens names of images as engines show them.
var familiar = strings.NewReplacer("docker.io/library/", "", "docker.io/", "")

func (e *projectEngine) image(w http.ResponseWriter, r *http.Request, rest string) {
	switch {
	case r.Method == http.MethodDelete:
		delete(e.things, "image "+strings.TrimSuffix(familiar.Replace(rest), ":latest"))
		answer(200, `[]`)(w, r)
	case strings.HasSuffix(rest, "/tag"):
		q := r.URL.Query()
		name := familiar.Replace(q.Get("repo"))
		if tag := q.Get("tag"); tag != "" && tag != "latest" {
			name += ":" + tag
		}
		if !strings.HasPrefix(name, "proctor-build") {
			e.things["image "+name] = nil
		}
		w.WriteHeader(http.StatusCreated)
	case rest == "json":
		answer(200, `[]`)(w, r)
	default:
		answer(200, `{"Id":"sha256:1","Os":"linux","Config":{}}`)(w, r)
	}
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

var versioned = regexp.MustCompile(`^/v1\.\d+`)

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// vanish cuts the connection.
func vanish(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

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
