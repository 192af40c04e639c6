// Package house holds the test that keeps the packages in their order.
package house

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/house/source"
)

// pure packages may be imported by anyone and import nothing of ours but
// each other.
var pure = []string{"value", "exception", "schema", "reward", "outcome", "atif", "cube/typed"}

// arrows lists, for each room, the rooms it may import besides the pure ones.
// A room also may import what lies below itself, and everything that its
// neighbours may import: arrows are followed.
var arrows = map[string][]string{
	"examples":  {"cmd", "ownrunner", "sandbox/compose"},
	"cmd":       {"cubecli", "cubecli/sandboxes", "job", "sandbox/docker", "sandbox/oci", "sandbox/guest", "cube/cubes"},
	"cubecli":   {"job", "cube/cubetest"},
	"job":       {"trial", "score", "dataset"},
	"trial":     {"agent", "environment", "cube/cubes/harbor", "jobdir"},
	"score":     {"jobdir"},
	"dataset":   {"jobdir"},
	"ownrunner": {"score", "dataset"},
	"jobdir":    {"harbor", "verify"},
	"harbor":    {"sandbox"},
	"agent":     {"cube", "sandbox", "atif"},
	"verify":    {"sandbox", "reward"},
	"cube":      {"sandbox"},
	"sandbox":   {},
	"internal":  {},

	// What programs open sandboxes with; cubecli itself stays free of backends.
	"cubecli/sandboxes": {"cubecli", "sandbox/docker", "sandbox/compose", "sandbox/oci", "sandbox/guest"},
	// The program that sandboxes builds.
	"cubecli/sandboxes/proctor-sandbox": {"sandbox/oci"},

	"environment":       {"verify", "harbor", "sandbox"},
	"cube/cubes/harbor": {"environment", "cube"},
}

// testHelpers may be imported by any test.
var testHelpers = []string{"sandbox/sandboxtest", "sandbox/fake", "cube/cubetest", "internal/vectors", "internal/need", "internal/jobtest"}

// banned names say nothing about what a package is for.
var banned = []string{"util", "utils", "common", "types", "models", "helpers", "manager"}

type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func TestArrows(t *testing.T) {
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, source.Module)
		for part := range strings.SplitSeq(from, "/") {
			if slices.Contains(banned, part) {
				t.Errorf("package %s: the name %q says nothing", from, part)
			}
		}
		for _, imp := range p.Imports {
			if to, ours := strings.CutPrefix(imp, source.Module); ours && !allowed(from, to) {
				t.Errorf("%s imports %s: the arrows of the house do not allow it", from, to)
			}
		}
		for _, imp := range slices.Concat(p.TestImports, p.XTestImports) {
			to, ours := strings.CutPrefix(imp, source.Module)
			if ours && to != from && !slices.Contains(testHelpers, to) && !allowed(from, to) {
				t.Errorf("a test of %s imports %s: the arrows of the house do not allow it", from, to)
			}
		}
	}
}

func packages(t *testing.T) []pkg {
	t.Helper()
	Watch(t, "../..")
	out, err := source.List("../..", "-json=ImportPath,Imports,TestImports,XTestImports", source.Module+"...")
	if err != nil {
		t.Fatal(err)
	}
	var all []pkg
	dec := json.NewDecoder(strings.NewReader(out))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("reading the package list: %v", err)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		t.Fatal("no packages found")
	}
	return all
}

func allowed(from, to string) bool {
	if isPure(from) {
		return isPure(to)
	}
	if isPure(to) || strings.HasPrefix(to, "internal/") {
		return true
	}
	room := roomOf(from)
	if roomOf(to) == room {
		return !isBackend(to) || isBackend(from)
	}
	reach := reachable(room)
	_, own := arrows[to]
	return slices.ContainsFunc(reach, func(r string) bool {
		return to == r || strings.HasPrefix(to, r+"/") && !own && (!isBackend(to) || isBackend(r))
	})
}

func isPure(p string) bool { return slices.Contains(pure, p) }

// isBackend reports packages that only programs may wire in.
func isBackend(p string) bool {
	return slices.ContainsFunc([]string{"sandbox/docker", "sandbox/compose", "sandbox/oci", "sandbox/guest"}, func(b string) bool {
		return p == b || strings.HasPrefix(p, b+"/")
	})
}

// roomOf is a package that has arrows of its own, else the top of its path.
func roomOf(p string) string {
	if _, own := arrows[p]; own {
		return p
	}
	room, _, _ := strings.Cut(p, "/")
	return room
}

func reachable(room string) []string {
	var seen []string
	var walk func(string)
	walk = func(r string) {
		for _, next := range arrows[r] {
			if !slices.Contains(seen, next) {
				seen = append(seen, next)
				walk(next)
			}
		}
	}
	walk(room)
	return seen
}
