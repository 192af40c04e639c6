package cubes_test

import (
	"context"
	"fmt"
	"regexp"
	"testing"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubes"
	"github.com/proctor-run/proctor/cube/cubetest"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// The commands of the text file tasks, as the fake sandbox understands them.
var (
	writing = regexp.MustCompile(`^printf '%s' '(.*)' > (\S+)$`)
	reading = regexp.MustCompile(`^cat (\S+)$`)
	removal = regexp.MustCompile(`^rm -f (\S+)$`)
)

func absolute(dir, path string) string {
	if path[0] == '/' {
		return path
	}
	return dir + "/" + path
}

// smallShell does the few commands that the tasks need.
func smallShell(_ context.Context, p *fake.Process) (int, error) {
	command := p.Command.Argv[len(p.Command.Argv)-1]
	if m := writing.FindStringSubmatch(command); m != nil {
		return 0, p.Sandbox.WriteFile(absolute(p.Dir, m[2]), []byte(m[1]), 0o644)
	}
	if m := removal.FindStringSubmatch(command); m != nil {
		_ = p.Sandbox.Remove(absolute(p.Dir, m[1])) // rm -f
		return 0, nil
	}
	if m := reading.FindStringSubmatch(command); m != nil {
		data, err := p.Sandbox.ReadFile(absolute(p.Dir, m[1]))
		if err != nil {
			_, _ = fmt.Fprintf(p.Stderr, "cat: %s: No such file or directory\n", m[1])
			return 1, nil
		}
		_, err = p.Stdout.Write(data)
		return 0, err
	}
	return 0, nil
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, c := range cubes.All() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			backend := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{fake.Always(smallShell)}})
			defer fake.Verify(t, backend)
			cubetest.Run(t, cubetest.Subject{
				Register: cubes.Register,
				Config:   c.Config(cube.NewLocalContainerBackend(backend)),
				Agent:    c.Agent,
				Options:  cube.Options{CacheRoot: t.TempDir(), Sandbox: backend},
				Running: func() []string {
					var names []string
					for _, sb := range backend.Sandboxes() {
						names = append(names, sb.ID())
					}
					return names
				},
			})
		})
	}
}

func TestDebugOutcome(t *testing.T) {
	t.Parallel()
	for _, c := range cubes.All() {
		if c.NeedsContainer {
			continue
		}
		reg := cube.NewRegistry(cube.Options{CacheRoot: t.TempDir()})
		if err := cubes.Register(reg); err != nil {
			t.Fatal(err)
		}
		o, err := cubetest.Debug(t.Context(), cubetest.Suite{Registry: reg, Config: c.Config(nil), Agent: c.Agent}, false)
		if err != nil {
			t.Fatal(err)
		}
		if o.ExitCode() != 0 {
			t.Errorf("%s: %+v", c.Name, o.Results)
		}
	}
}
