// Package house holds the test that keeps the packages in their order.
package house

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/house/source"
)

// mapFile has the table of rooms: which there are, from top to bottom, and what
// each imports.
const mapFile = "../../docs/architecture.md"

// testHelpers may be imported by any test.
var testHelpers = []string{"sandbox/sandboxtest", "sandbox/fake", "cube/cubetest", "cube/cubes", "agent/agents", "agent/installed", "llm/llmtest"}

// Rooms whose packages read and write files, and run nothing.
var formats = []string{"harbor", "jobdir", "dataset", "score", "audit", "report", "view", "ownrunner", "value", "exception", "schema", "reward", "outcome", "atif", "cube/typed", "agent/logs"}

// Rooms that only programs wire in.
var backends = []string{"sandbox/docker", "sandbox/compose", "sandbox/oci", "sandbox/guest"}

// never says what no package of some rooms reaches, however many imports away.
var never = []struct{ rooms, reach []string }{
	{formats, append([]string{"sandbox", "verify", "environment", "agent", "cube", "trial", "job"}, backends...)},
	{[]string{"sandbox", "verify", "environment", "agent", "cube", "cube/cubetest", "cube/cubes", "cube/cubes/harbor", "trial", "job", "cubecli"}, backends},
	{append([]string{"sandbox", "sandbox/pool", "sandbox/fake", "sandbox/egress"}, backends...), []string{"harbor", "jobdir", "verify", "agent", "cube"}},
}

// banned names say nothing about what a package is for.
var banned = []string{"util", "utils", "common", "types", "models", "helpers", "manager"}

// room is a row of the table.
type room struct {
	name           string
	order          int // from the top
	pure, anything bool
	// imports has the other rooms that it may import, and whether it does.
	imports map[string]bool
}

// house is the table, and the packages.
type house struct {
	rooms    map[string]*room
	packages map[string]pkg // by path in the module
}

type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func TestArrows(t *testing.T) {
	h := readHouse(t)
	inhabited := map[string]bool{}
	for path, p := range h.packages {
		for part := range strings.SplitSeq(path, "/") {
			if slices.Contains(banned, part) {
				t.Errorf("package %s: the name %q says nothing", path, part)
			}
		}
		from := h.roomOf(path)
		if from == nil {
			t.Errorf("package %s belongs to no room of %s", path, mapFile)
			continue
		}
		inhabited[from.name] = true
		for to := range ours(p.Imports) {
			if !h.allowed(from, to) {
				t.Errorf("%s imports %s: the row of %s in %s does not name it", path, to, from.name, mapFile)
			}
		}
		for to := range ours(slices.Concat(p.TestImports, p.XTestImports)) {
			if !slices.Contains(testHelpers, h.roomOf(to).name) && !h.reachable(from, to) {
				t.Errorf("a test of %s imports %s, which %s does not reach", path, to, from.name)
			}
		}
	}
	for name, r := range h.rooms {
		if !inhabited[name] {
			t.Errorf("%s: room %s has no package", mapFile, name)
		}
		for to, used := range r.imports {
			if !used {
				t.Errorf("%s: %s does not import %s any more", mapFile, name, to)
			}
		}
	}
}

func TestNever(t *testing.T) {
	h := readHouse(t)
	for path := range h.packages {
		from := h.roomOf(path)
		for _, rule := range never {
			if !slices.Contains(rule.rooms, from.name) {
				continue
			}
			for to, way := range h.reach(path) {
				if r := h.roomOf(to); r != from && slices.Contains(rule.reach, r.name) {
					t.Errorf("%s reaches %s: %s", path, to, strings.Join(way, " imports "))
				}
			}
		}
	}
	for _, rule := range never {
		for _, name := range slices.Concat(rule.rooms, rule.reach) {
			if h.rooms[name] == nil {
				t.Errorf("there is no room %s", name)
			}
		}
	}
}

// TestHole: the rules find what they are for.
func TestHole(t *testing.T) {
	h := readHouse(t)
	for _, c := range []struct{ from, to string }{{"score", "verify"}, {"score", "sandbox/pool"}, {"jobdir", "sandbox"}, {"job", "sandbox/egress"}, {"reward", "harbor"}, {"agent", "job"}} {
		if h.allowed(h.rooms[c.from], c.to) {
			t.Errorf("%s may import %s", c.from, c.to)
		}
	}
	h.packages["score"] = pkg{Imports: []string{source.Module + "dataset"}}
	h.packages["dataset"] = pkg{Imports: []string{source.Module + "internal/clock"}}
	h.packages["internal/clock"] = pkg{Imports: []string{source.Module + "sandbox/guest"}}
	if way := h.reach("score")["sandbox/guest"]; len(way) != 4 {
		t.Errorf("the way from score to sandbox/guest is %q", way)
	}
}

func readHouse(t *testing.T) *house {
	t.Helper()
	return &house{rooms: rooms(t), packages: packages(t)}
}

var cellName = regexp.MustCompile("`([a-z0-9/-]+)`")

// rooms reads the table.
func rooms(t *testing.T) map[string]*room {
	t.Helper()
	text, err := os.ReadFile(mapFile)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n| room | what it is for | imports |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	all := map[string]*room{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 3 {
			t.Fatalf("%s: want three cells: %s", mapFile, line)
		}
		last := strings.TrimSpace(cells[2])
		r := &room{name: cellName.FindStringSubmatch(cells[0])[1], order: len(all), pure: last == "pure", anything: last == "anything", imports: map[string]bool{}}
		for _, name := range cellName.FindAllStringSubmatch(last, -1) {
			r.imports[name[1]] = false
		}
		if len(r.imports) == 0 && !r.pure && !r.anything && last != "nothing" {
			t.Errorf("%s: room %s: %q is none of names, nothing, pure and anything", mapFile, r.name, last)
		}
		all[r.name] = r
	}
	if len(all) == 0 {
		t.Fatalf("%s has no table of rooms", mapFile)
	}
	for _, r := range all {
		for to := range r.imports {
			if below := all[to]; below == nil || below.order <= r.order {
				t.Errorf("%s: %s imports %s, which does not stand below it", mapFile, r.name, to)
			}
		}
	}
	return all
}

func packages(t *testing.T) map[string]pkg {
	t.Helper()
	Watch(t, "../..")
	out, err := source.List("../..", "-json=ImportPath,Imports,TestImports,XTestImports", source.Module+"...")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]pkg{}
	dec := json.NewDecoder(strings.NewReader(out))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("reading the package list: %v", err)
		}
		all[strings.TrimPrefix(p.ImportPath, source.Module)] = p
	}
	if len(all) == 0 {
		t.Fatal("no packages found")
	}
	return all
}

// ours are the packages of this module among imports, by path in the module.
func ours(imports []string) map[string]bool {
	paths := map[string]bool{}
	for _, imp := range imports {
		if path, ok := strings.CutPrefix(imp, source.Module); ok {
			paths[path] = true
		}
	}
	return paths
}

// roomOf is the room that a package lies in: the nearest above it.
func (h *house) roomOf(path string) *room {
	for {
		if r := h.rooms[path]; r != nil {
			return r
		}
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return nil
		}
		path = path[:i]
	}
}

// allowed reports whether packages of a room may import a package, and notes that
// one does.
func (h *house) allowed(from *room, path string) bool {
	to := h.roomOf(path)
	if to == nil {
		return false
	}
	if _, named := from.imports[to.name]; named {
		from.imports[to.name] = true
		return true
	}
	return to == from || from.anything || to.pure || to.name == "internal" && !from.pure
}

// reachable reports whether a room, or one that it may import, may import a
// package: what tests put together.
func (h *house) reachable(from *room, path string) bool {
	seen := map[*room]bool{}
	var walk func(*room) bool
	walk = func(r *room) bool {
		if seen[r] {
			return false
		}
		seen[r] = true
		to := h.roomOf(path)
		if _, named := r.imports[to.name]; named || to == r || r.anything || to.pure || to.name == "internal" {
			return true
		}
		for next := range r.imports {
			if walk(h.rooms[next]) {
				return true
			}
		}
		return false
	}
	return walk(from)
}

// reach has what a package imports, however many imports away, with a way there.
func (h *house) reach(path string) map[string][]string {
	ways := map[string][]string{path: {path}}
	for queue := []string{path}; len(queue) > 0; queue = queue[1:] {
		for _, next := range slices.Sorted(maps.Keys(ours(h.packages[queue[0]].Imports))) {
			if ways[next] == nil {
				ways[next] = append(slices.Clone(ways[queue[0]]), next)
				queue = append(queue, next)
			}
		}
	}
	delete(ways, path)
	return ways
}
