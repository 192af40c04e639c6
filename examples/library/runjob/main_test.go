package main

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/sandbox/fake"
)

// Example_run runs a job whose sandbox is simulated: the tests give a reward of
// 1.
func Example_run() {
	dir, err := os.MkdirTemp("", "runjob")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	set := filepath.Join(dir, "set")
	for name, text := range map[string]string{
		"task.toml": "", "instruction.md": "Say hello.", "environment/Dockerfile": "FROM debian:12\n",
		"tests/test.sh": "#!/bin/bash\n", "solution/solve.sh": "#!/bin/bash\n",
	} {
		path := filepath.Join(set, "hello", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			panic(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			panic(err)
		}
	}
	backend := fake.New(fake.Config{Dir: dir, Rules: []fake.Rule{
		fake.On("/tests/test.sh", fake.Write("/logs/verifier/reward.txt", "1\n")),
	}})
	if err := run(context.Background(), backend, filepath.Join(dir, "jobs"), set); err != nil {
		panic(err)
	}
	// Output: oracle__set: mean 1.0 over 1 trials
}

func TestIsShort(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "main.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			lines += fset.Position(f.End()).Line - fset.Position(f.Pos()).Line + 1
		}
	}
	if lines > 30 {
		t.Errorf("running a job takes %d lines, want at most 30", lines)
	}
}
