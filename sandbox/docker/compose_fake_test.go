package docker_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/docker"
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

func newProjectEngine(t testing.TB) (*projectEngine, *docker.Backend) {
	t.Helper()
	e := &projectEngine{
		things: map[string]map[string]string{}, bodies: map[string]json.RawMessage{}, subnets: map[string]bool{},
		state: `{"Status":"running","Running":true,"Health":{"Status":"healthy"}}`,
	}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	b, err := docker.New(docker.Options{Host: "tcp://" + strings.TrimPrefix(server.URL, "http://"), Environ: []string{"HOST_VAR=host"}})
	if err != nil {
		t.Fatal(err)
	}
	return e, b
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

const fakeProject = `
x-hide: &hide {proctor.owner: nobody, proctor.sandbox: none, com.docker.compose.project: other}
services:
  main: {depends_on: [side], labels: *hide}
  side:
    build: .
    labels: *hide
    networks: [default, back]
    volumes: [data:/data]
    secrets: [word]
networks: {back: {labels: *hide}}
volumes: {data: {labels: *hide}}
secrets: {word: {environment: HOST_VAR}}
`

// TestComposeFaults lets each call to the engine fail once, by an answer and
// by a cut connection: nothing is left of the project, or the error says what.
func TestComposeFaults(t *testing.T) {
	t.Parallel()
	for _, cut := range []bool{false, true} {
		total := 0
		for failAt := 0; failAt <= total; failAt++ {
			e, b := newProjectEngine(t)
			e.failAt, e.vanish = failAt, cut
			spec := composeSpec(t, map[string]string{"Dockerfile": "FROM scratch\n", "docker-compose.yaml": fakeProject})
			spec.Image = sandbox.Image{Ref: "img"}
			sb, err := b.Create(t.Context(), spec)
			if failAt == 0 {
				if err != nil {
					t.Fatal(err)
				}
				total = e.calls
				if n := len(e.left()); n != 2+2+1+2 {
					t.Errorf("%d things are made: %q", n, e.left())
				}
			}
			if err == nil {
				// What only looks is asked once more when the connection is cut.
				if failAt > 0 && (!cut || !strings.HasPrefix(e.failed, http.MethodGet)) {
					t.Errorf("call %d, %s: no error", failAt, e.failed)
				}
				if err := sb.Destroy(t.Context()); err != nil {
					t.Errorf("call %d, %s: %v", failAt, e.failed, err)
				}
			}
			if left := e.left(); len(left) > 0 {
				t.Errorf("call %d, %s: left are %q after %v", failAt, e.failed, left, err)
			}
		}
		t.Logf("%d calls failed in turn, connection cut: %v", total, cut)
	}
}

// TestComposeDestroyFaults lets each call of Destroy fail once: it reports the
// error, and does the rest when it is called again.
func TestComposeDestroyFaults(t *testing.T) {
	t.Parallel()
	total := 1
	for failAt := 1; failAt <= total; failAt++ {
		e, b := newProjectEngine(t)
		spec := composeSpec(t, map[string]string{"Dockerfile": "FROM scratch\n", "docker-compose.yaml": fakeProject})
		spec.Image = sandbox.Image{Ref: "img"}
		sb, err := b.Create(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		before := e.calls
		e.failAt = before + failAt
		err = sb.Destroy(t.Context())
		total = max(total, e.calls-before)
		if failed := e.failed != ""; failed != (err != nil) {
			t.Errorf("call %d, %s: got error %v", failAt, e.failed, err)
		}
		if err := sb.Destroy(t.Context()); err != nil {
			t.Errorf("call %d, %s: again: %v", failAt, e.failed, err)
		}
		if left := e.left(); len(left) > 0 {
			t.Errorf("call %d, %s: left are %q", failAt, e.failed, left)
		}
	}
	t.Logf("%d calls of Destroy failed in turn", total)
}

func TestComposeSubnetIsTakenByAnother(t *testing.T) {
	t.Parallel()
	e, b := newProjectEngine(t)
	e.overlapped = 5
	spec := composeSpec(t, map[string]string{"docker-compose.yaml": "services: {main: {}}\n"})
	up(t, b, spec)
	if len(e.subnets) != 1 {
		t.Errorf("subnets: %v", e.subnets)
	}
	e, b = newProjectEngine(t)
	e.overlapped = 1000
	if _, err := b.Create(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "overlaps") {
		t.Errorf("got error %v", err)
	}
	if left := e.left(); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

func TestComposeServiceThatFails(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{
		`{"Status":"exited","ExitCode":3}`: "exited (3)",
		`{"Status":"running","Running":true,"Health":{"Status":"unhealthy","Log":[{"Output":"no answer"}]}}`: "is unhealthy: no answer",
		`null`: "no state",
	} {
		e, b := newProjectEngine(t)
		e.state = state
		_, err := b.Create(t.Context(), composeSpec(t, map[string]string{"docker-compose.yaml": "services: {main: {}}\n"}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", state, err, want)
		}
		if want != "no state" && !strings.Contains(err.Error(), "Return code: 1") {
			t.Errorf("%s: the error tells no return code: %v", state, err)
		}
		if left := e.left(); len(left) > 0 {
			t.Errorf("%s: left are %q", state, left)
		}
	}
}

func TestComposeOfALivingProcess(t *testing.T) {
	t.Parallel()
	e, b := newProjectEngine(t)
	spec := composeSpec(t, map[string]string{"docker-compose.yaml": "services: {main: {}}\n"})
	self := spec.Labels.Owner
	stale := map[string]string{"com.docker.compose.project": spec.Compose.Project}
	owned := maps.Clone(stale)
	owned["proctor.owner"] = self.String()
	e.things["container old"], e.things["network old"] = stale, stale
	other := spec
	other.Labels.Owner.PID++ // a process of its own, that is not this one
	e.things["container living"] = owned
	if _, err := b.Create(t.Context(), other); err == nil || !strings.Contains(err.Error(), "in use by process") {
		t.Errorf("got error %v", err)
	}
	if n := len(e.left()); n != 3 {
		t.Errorf("left are %q", e.left())
	}
	delete(e.things, "container living")
	up(t, b, other)
	if left := e.left(); slices.Contains(left, "container old") || slices.Contains(left, "network old") {
		t.Errorf("an earlier run's things are left: %q", left)
	}
}
