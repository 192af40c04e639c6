package reverse_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubetest"
	"github.com/proctor-run/proctor/cube/internal/reverse"
)

func agent(task cube.TaskConfig) cube.Agent {
	r := []rune(task.TaskMetadata().(*reverse.Metadata).Word)
	slices.Reverse(r)
	return cube.Script(cube.NewAction("answer", "word", string(r)))
}

func TestConformance(t *testing.T) {
	t.Parallel()
	cubetest.Run(t, cubetest.Subject{
		Register: reverse.Register,
		Config:   &reverse.Config{},
		Agent:    agent,
		Options:  cube.Options{CacheRoot: t.TempDir()},
	})
}

// TestDocumentation: the page for authors shows this very cube.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.FromSlash("../../../docs/cube.md"))
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("cube.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```go\n")
	shown, _, _ := strings.Cut(rest, "```\n")
	if diff := cmp.Diff(string(code), shown); diff != "" {
		t.Errorf("docs/cube.md shows another cube (-cube.go +docs):\n%s", diff)
	}
}
