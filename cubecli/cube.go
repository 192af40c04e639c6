package cubecli

import (
	"fmt"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubetest"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/sandbox"
)

// Cube is one benchmark as the commands work with it.
type Cube struct {
	// Name is the benchmark's name; no command takes a cube with another.
	Name string
	// Register adds the cube's types to a registry.
	Register func(*cube.Registry) error
	// Config returns the whole benchmark. Cubes whose tasks run in containers
	// launch them with the backend; the others ignore it.
	Config func(cube.ContainerBackend) cube.BenchmarkConfig
	// Load, when set, is called instead of Register and Config: for cubes that
	// are made of data, whose config belongs to the registry.
	Load func(*cube.Registry, cube.ContainerBackend) (cube.BenchmarkConfig, error)
	// Agent makes the debug agent of a task: "test" needs it, and "run" calls it
	// oracle. Nil means that nobody knows the solutions.
	Agent cubetest.DebugAgent
	// Goal is the reward that the debug agent reaches on a task, by its native
	// id; nil means 1.0 on all.
	Goal func(taskID string) float64
	// VolatileInfo are keys of info that differ from one evaluation to the next.
	VolatileInfo []string
	// NeedsContainer says that the tasks run in containers.
	NeedsContainer bool
	// Infra, when set, makes what provisions and launches the benchmark's resources;
	// containers of its own can run in sandboxes of the backend, which is nil where
	// NeedsContainer is not set. A cube that has resources and no Infra is not run.
	Infra func(sandbox.Backend) (cube.Infra, error)
	// Mask lists directories of this machine that containers must not show.
	Mask []string
}

func (c *Cube) load(r *cube.Registry, b cube.ContainerBackend) (cube.BenchmarkConfig, error) {
	if c.Load != nil {
		return c.Load(r, b)
	}
	if err := c.Register(r); err != nil {
		return nil, err
	}
	return c.Config(b), nil
}

// Select registers the cube and selects tasks of it. Containers run in the
// sandboxes of the backend, which may be nil.
func (c *Cube) Select(r *cube.Registry, sandboxes sandbox.Backend, choice Choice) (*cube.Selection, error) {
	var launcher cube.ContainerBackend
	if sandboxes != nil {
		launcher = cube.NewLocalContainerBackend(sandboxes)
	}
	cfg, err := c.load(r, launcher)
	if err != nil {
		return nil, err
	}
	sel, err := r.Select(cfg)
	if err != nil {
		return nil, err
	}
	if sel.Name() != c.Name { // a job knows its tasks by the benchmark's name
		return nil, exitcode.WithHint(exitcode.Usagef("the cube is called %q, and its benchmark %q", c.Name, sel.Name()),
			"the Name of a cubecli.Cube is that of its benchmark")
	}
	return choice.of(sel)
}

// Opener sets the cube up for a job, with the tasks of a choice. cacheRoot is the
// directory for what cubes install.
func (c *Cube) Opener(cacheRoot string, choice Choice) job.CubeOpener {
	return job.CubeOpener{
		Containers: c.NeedsContainer, Hidden: c.Mask,
		Open: func(b sandbox.Backend) (job.CubeSource, error) {
			if !c.NeedsContainer {
				b = nil
			}
			r := cube.NewRegistry(cube.Options{CacheRoot: cacheRoot, Sandbox: b})
			sel, err := c.Select(r, b, choice)
			if err != nil {
				return job.CubeSource{}, err
			}
			infra, err := c.infra(b)
			return job.CubeSource{Selection: sel, Oracle: c.Agent, Infra: infra}, err
		},
	}
}

// infra makes the cube's own infra, nil when it has none.
func (c *Cube) infra(sandboxes sandbox.Backend) (cube.Infra, error) {
	if c.Infra == nil {
		return nil, nil
	}
	infra, err := c.Infra(sandboxes)
	if err != nil {
		return nil, fmt.Errorf("making the infra of %s: %w", c.Name, err)
	}
	return infra, nil
}
