package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRun: one trial for each task of the cube, solved by the program's own agent.
func TestRun(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run(t.Context(), &out, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(`__\w+`).ReplaceAllString(out.String(), "")
	lines := strings.Split(strings.TrimSpace(got), "\n")
	slices.Sort(lines)
	if want := []string{"cat {'reward': 1.0}", "naïve {'reward': 1.0}"}; !slices.Equal(lines, want) {
		t.Errorf("printed %q, want %q", lines, want)
	}
}

// TestIsShort: an agent of one's own on a cube takes no more than this.
func TestIsShort(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "main.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && (f.Name.Name == "main" || f.Name.Name == "run") {
			lines += fset.Position(f.End()).Line - fset.Position(f.Pos()).Line + 1
		}
	}
	if lines > 30 {
		t.Errorf("running a cube takes %d lines, want at most 30", lines)
	}
}
