package cube

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubes"
	"github.com/proctor-run/proctor/cube/cubes/arithmetic"
	"github.com/proctor-run/proctor/cube/cubes/starter"
	"github.com/proctor-run/proctor/cube/cubes/textfiles"
	"github.com/proctor-run/proctor/cube/cubetest"
	"github.com/proctor-run/proctor/cube/protocol"
	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/cubecli"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	cubetest.Run(t, cubetest.Subject{
		Register: Register, Config: &Config{}, Agent: Solve,
		Options: cube.Options{CacheRoot: t.TempDir()},
	})
}

func TestComposite(t *testing.T) {
	t.Parallel()
	cubetest.Run(t, cubetest.Subject{
		Register: func(r *cube.Registry) error { return errors.Join(Register(r), arithmetic.Register(r)) },
		Config:   Mixed(), Agent: Solve, MaxTasks: 2,
		Options: cube.Options{CacheRoot: t.TempDir()},
	})
}

// The program of the cube, run as the command line "letters test letters".
func TestProgram(t *testing.T) {
	t.Parallel()
	var out, errs strings.Builder
	p := cubecli.Program{
		Name: "letters", Cubes: []cubecli.Cube{Cube()}, Args: []string{"letters", "list"},
		CacheRoot: func() (string, error) { return t.TempDir(), nil },
		Stdout:    &out, Stderr: &errs, Now: time.Now,
		Lookup: func(string) (string, bool) { return "", false },
	}
	if code := p.Run(t.Context()); code != 0 || !strings.Contains(out.String(), "letters") {
		t.Errorf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
}

// Documents are written and read by their types' names.
func TestDocument(t *testing.T) {
	t.Parallel()
	r := cube.NewRegistry(cube.Options{})
	if err := Register(r); err != nil {
		t.Fatal(err)
	}
	data, err := cube.Marshal(&ToolConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), `"`+typed.TypeKey+`"`) {
		t.Errorf("a document without its type: %s", data)
	}
	if _, err := cube.Load[*ToolConfig](r, data); err != nil {
		t.Error(err)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	r := cube.NewRegistry(cube.Options{})
	if err := Register(r); err != nil {
		t.Fatal(err)
	}
	sel, err := r.Select(&Config{})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := Find(sel, "cat"); err != nil || m.Base().ID != "cat" {
		t.Errorf("%v, %v", m, err)
	}
	_, err = Find(sel, "dog")
	if e, ok := errors.AsType[*protocol.Error](err); !ok || e.Code != "TASK_NOT_FOUND" {
		t.Errorf("%v, want that there is no such task", err)
	}
}

func TestShell(t *testing.T) {
	t.Parallel()
	b := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{fake.On("echo hello", fake.Print("hello\n"))}})
	defer fake.Verify(t, b)
	sb, err := b.Create(t.Context(), sandbox.Spec{Name: "one"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sb.Destroy(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	tool, err := Shell(t.Context(), sb)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tool.Execute(t.Context(), cube.NewAction("bash", "command", "echo hello"))
	if err != nil || b.Count(fake.OpExec) == 0 {
		t.Errorf("%v, %v", got, err)
	}
}

// The cubes that are shipped can be selected by any program.
func TestShipped(t *testing.T) {
	t.Parallel()
	if len(cubes.All()) == 0 {
		t.Error("no cubes are shipped")
	}
	r := cube.NewRegistry(cube.Options{})
	if err := cubes.Register(r); err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []cube.BenchmarkConfig{starter.Config(nil), textfiles.NewConfig(nil)} {
		sel, err := r.Select(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := sel.NumTasks(); err != nil || n == 0 {
			t.Errorf("%s has %d tasks, %v", sel.Name(), n, err)
		}
	}
}
