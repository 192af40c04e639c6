// Package enginetest has a container engine for tests that holds nothing but notes.
package enginetest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Engine is an engine that remembers what was made on it, as far as
// compose projects make anything.
type Engine struct {
	// FailAt is the call that fails, counted from 1; 0 for none. Vanish: the
	// connection is cut. Failed is the call that did.
	FailAt int
	Vanish bool
	Failed string
	// Calls is how many there were.
	Calls int
	// Things are what was made and not removed, "container c1", to their labels.
	Things map[string]map[string]string
	// Subnets of networks, and how many more are refused as taken.
	Subnets    map[string]bool
	Overlapped int
	// State of containers, as JSON.
	State string

	mu     sync.Mutex
	bodies map[string]json.RawMessage // name of a container to what it was made of
	next   int
}

// New starts an engine, and returns its address.
func New(t testing.TB) (e *Engine, host string) {
	t.Helper()
	e = &Engine{
		Things: map[string]map[string]string{}, bodies: map[string]json.RawMessage{}, Subnets: map[string]bool{},
		State: `{"Status":"running","Running":true,"Health":{"Status":"healthy"}}`,
	}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return e, "tcp://" + strings.TrimPrefix(server.URL, "http://")
}

// Left lists what is there.
func (e *Engine) Left() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.Things))
}

// Created is what a container was made of.
func (e *Engine) Created(t testing.TB, name string) map[string]any {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	var body map[string]any
	if err := json.Unmarshal(e.bodies[name], &body); err != nil {
		t.Fatalf("container %q: %v", name, err)
	}
	return body
}

// ServeHTTP answers a call of the API.
func (e *Engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := versioned.ReplaceAllString(r.URL.Path, "")
	e.mu.Lock()
	defer e.mu.Unlock()
	if path == "/_ping" {
		w.Header().Set("Api-Version", "1.41")
		w.Header().Set("Ostype", "linux")
		return
	}
	e.Calls++
	if e.Calls == e.FailAt {
		e.Failed = r.Method + " " + path
		if e.Vanish {
			vanish(w, r)
			return
		}
		answer(http.StatusInternalServerError, `{"message":"broken inside"}`)(w, r)
		return
	}
	e.handle(w, r, path)
}

// handle answers a call that does not fail.
func (e *Engine) handle(w http.ResponseWriter, r *http.Request, path string) {
	kind, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch {
	case r.Method == http.MethodGet && (rest == "json" && kind != "images" || rest == ""):
		e.list(w, r, strings.TrimSuffix(kind, "s"))
	case r.Method == http.MethodPost && rest == "create":
		e.create(w, r, strings.TrimSuffix(kind, "s"))
	case kind == "images":
		e.image(w, r, rest)
	case r.Method == http.MethodDelete:
		delete(e.Things, strings.TrimSuffix(kind, "s")+" "+rest)
		w.WriteHeader(http.StatusNoContent)
	case kind == "containers" && strings.HasSuffix(rest, "/json"):
		answer(200, `{"Id":"x","Name":"/x","State":`+e.State+`}`)(w, r)
	case kind == "volumes" && r.Method == http.MethodGet:
		answer(404, `{"message":"no such volume"}`)(w, r)
	default:
		answer(http.StatusNoContent, "")(w, r)
	}
}

func (e *Engine) list(w http.ResponseWriter, r *http.Request, kind string) {
	var filters map[string]map[string]bool
	_ = json.Unmarshal([]byte(r.URL.Query().Get("filters")), &filters)
	items := []map[string]any{}
	for thing, labels := range e.Things {
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

func (e *Engine) create(w http.ResponseWriter, r *http.Request, kind string) {
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
	if kind == "network" && e.Overlapped > 0 {
		e.Overlapped--
		answer(403, `{"message":"Pool overlaps with other one on this address space"}`)(w, r)
		return
	}
	for _, c := range body.IPAM.Config {
		e.Subnets[c.Subnet] = true
	}
	e.Things[kind+" "+id] = body.Labels
	answer(201, fmt.Sprintf(`{"Id":%q,"Name":%q}`, id, id))(w, r)
}

// familiar shortens names of images as engines show them.
var familiar = strings.NewReplacer("docker.io/library/", "", "docker.io/", "")

func (e *Engine) image(w http.ResponseWriter, r *http.Request, rest string) {
	switch {
	case r.Method == http.MethodDelete:
		delete(e.Things, "image "+strings.TrimSuffix(familiar.Replace(rest), ":latest"))
		answer(200, `[]`)(w, r)
	case strings.HasSuffix(rest, "/tag"):
		q := r.URL.Query()
		name := familiar.Replace(q.Get("repo"))
		if tag := q.Get("tag"); tag != "" && tag != "latest" {
			name += ":" + tag
		}
		if !strings.HasPrefix(name, "proctor-build") {
			e.Things["image "+name] = nil
		}
		w.WriteHeader(http.StatusCreated)
	case rest == "json":
		answer(200, `[]`)(w, r)
	default:
		answer(200, `{"Id":"sha256:1","Os":"linux","Config":{}}`)(w, r)
	}
}

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
