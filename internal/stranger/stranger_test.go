package stranger

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/internal/house"
)

const (
	proctor = "github.com/proctor-run/proctor"
	root    = "../.."
	sources = "../../examples/library"
)

// unused names public packages that the module does not import, with the reason.
var unused = map[string]string{
	"agent/external": "agents.All has its agents",
	"agent/terminus": "agents.All has its agent",
	"agent/tools":    "agents.All has its agent",
	"view":           "proctor view serves it: a handler of requests, which needs no example",
}

// TestModule copies examples/library into a module of its own, beside this tree
// and with nothing but the tree and what it requires, and vets and tests it
// there: what a stranger needs is exported, and no more than Go's own commands
// are necessary.
func TestModule(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds a module, which takes a while")
	}
	house.Watch(t, root)
	dir := newModule(t)
	run(t, dir, "go", "vet", "./...")
	t.Log(run(t, dir, "go", "test", "./..."))

	imports := strings.Fields(run(t, dir, "go", "list", "-f", `{{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}`, "./..."))
	public := strings.Fields(run(t, root, "go", "list", "-f", `{{if ne .Name "main"}}{{.ImportPath}}{{end}}`, "./..."))
	for _, p := range public {
		rel := strings.TrimPrefix(p, proctor+"/")
		if isInternal(rel) || strings.HasPrefix(rel, "examples/") {
			continue
		}
		reason, excepted := unused[rel]
		switch used := slices.Contains(imports, p); {
		case !used && !excepted:
			t.Errorf("package %s is public, and examples/library does not show its use", rel)
		case used && excepted:
			t.Errorf("package %s is used: it is no exception (%s)", rel, reason)
		}
	}
}

// TestDocumentation: the page for users of the library shows the program that is
// tested, whole.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs", "library.md"))
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(filepath.Join(sources, "runjob", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```go\n")
	shown, _, _ := strings.Cut(rest, "```\n")
	if diff := cmp.Diff(string(code), shown); diff != "" {
		t.Errorf("docs/library.md shows another program (-main.go +docs):\n%s", diff)
	}
}

func isInternal(path string) bool {
	return slices.Contains(strings.Split(path, "/"), "internal")
}

// newModule makes the module of the copied sources.
func newModule(t *testing.T) string {
	t.Helper()
	tree, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "stranger")
	if err := os.CopyFS(dir, os.DirFS(sources)); err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	version := strings.TrimSpace(run(t, root, "go", "list", "-m", "-f", "{{.GoVersion}}", proctor))
	mod := fmt.Sprintf("module example.com/stranger\n\ngo %[3]s\n\nrequire %[1]s v0.0.0\n\nreplace %[1]s => %[2]q\n", proctor, tree, version)
	for name, data := range map[string][]byte{"go.mod": []byte(mod), "go.sum": sum} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// run runs a command without a network and returns its output.
func run(t *testing.T, dir string, argv ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	if dir != root {
		cmd.Env = append(cmd.Env, "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod")
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(argv, " "), err, out, errs.String())
	}
	return string(out)
}
