package job

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/trial"
)

// Cubes are benchmarks that have been set up, so that a job can run their
// tasks. A configuration names such a task as a local one, by the path of
// [trial.CubePath]; the path is the key under which it is found again when the
// job is resumed.
type Cubes struct {
	tasks   map[string]*trial.CubeTask
	benches []*cube.Benchmark
}

// CubeSource is a benchmark to be run.
type CubeSource struct {
	// Registry knows the types of the benchmark.
	Registry *cube.Registry
	// Selection of its tasks.
	Selection *cube.Selection
	// Oracle makes the agent that solves a task; nil when nobody can.
	Oracle func(cube.TaskConfig) cube.Agent
	// Containers says that the tasks run in containers: then they are sandboxes
	// of the trial's backend.
	Containers bool
}

// Add installs a benchmark, sets it up and adds its selected tasks. It returns
// them as a job's configuration has them. The benchmark is closed by Close.
func (c *Cubes) Add(ctx context.Context, s CubeSource) ([]jobdir.TaskConfig, error) {
	if err := s.Selection.Install(ctx); err != nil {
		return nil, fmt.Errorf("installing %s: %w", s.Selection.Name(), err)
	}
	bench, err := s.Selection.Make(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("setting up %s: %w", s.Selection.Name(), err)
	}
	c.benches = append(c.benches, bench)
	var list []jobdir.TaskConfig
	for config, err := range bench.TaskConfigs() {
		if err != nil {
			return nil, fmt.Errorf("listing the tasks of %s: %w", bench.Name(), err)
		}
		task, err := s.task(bench, config)
		if err != nil {
			return nil, fmt.Errorf("task %s of %s: %w", config.TaskID(), bench.Name(), err)
		}
		path := trial.CubePath(bench.Name(), config.TaskID())
		if c.tasks[path] != nil {
			return nil, fmt.Errorf("two tasks are called %q", path)
		}
		if c.tasks == nil {
			c.tasks = map[string]*trial.CubeTask{}
		}
		c.tasks[path] = task
		list = append(list, jobdir.TaskConfig{Path: &path})
	}
	return list, nil
}

// task is a cube's task as trials take it. Its content is its config.
func (s CubeSource) task(bench *cube.Benchmark, config cube.TaskConfig) (*trial.CubeTask, error) {
	data, err := cube.Marshal(config)
	if err != nil {
		return nil, err
	}
	leaf, err := bench.Leaf(config)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	t := &trial.CubeTask{
		Name:     bench.Name() + "/" + config.TaskID(),
		Checksum: hex.EncodeToString(sum[:]),
		Make: func(ctx context.Context, b sandbox.Backend) (*cube.Task, error) {
			var launcher cube.ContainerBackend
			if s.Containers {
				launcher = cube.NewLocalContainerBackend(b)
			}
			return s.Registry.MakeTask(ctx, config, leaf.RuntimeContext(), launcher)
		},
	}
	if s.Oracle != nil {
		t.Oracle = func() cube.Agent { return s.Oracle(config) }
	}
	return t, nil
}

// Task returns the task of a configuration; nil when it is not one of these. A
// nil *Cubes has none.
func (c *Cubes) Task(t jobdir.TaskConfig) *trial.CubeTask {
	if c == nil || t.Kind() != jobdir.LocalTask || t.Path == nil {
		return nil
	}
	return c.tasks[*t.Path]
}

// Find is Task for the Cube hook of a [trial.Runner].
func (c *Cubes) Find(cfg jobdir.TrialConfig) (*trial.CubeTask, error) { return c.Task(cfg.Task), nil }

// Close closes the benchmarks, the last one first.
func (c *Cubes) Close(ctx context.Context) error {
	var errs []error
	for i := len(c.benches) - 1; i >= 0; i-- {
		errs = append(errs, c.benches[i].Close(ctx))
	}
	c.benches = nil
	return errors.Join(errs...)
}

// CubesOf names the benchmarks whose tasks a configuration names, without those
// whose path is a directory, as isDirectory reports.
func CubesOf(cfg jobdir.Config, isDirectory func(path string) bool) []string {
	var names []string
	seen := map[string]bool{}
	for _, t := range cfg.Tasks {
		if t.Kind() != jobdir.LocalTask || t.Path == nil || isDirectory(*t.Path) {
			continue
		}
		rest, ok := strings.CutPrefix(*t.Path, trial.CubePath("", "")+"/")
		if !ok {
			continue
		}
		if name, _, ok := strings.Cut(rest, "/"); ok && !seen[name] {
			seen[name], names = true, append(names, name)
		}
	}
	return names
}

// NoSandboxes is the backend of jobs whose cubes need none.
type NoSandboxes struct{}

var _ sandbox.Backend = NoSandboxes{}

// Name is "none".
func (NoSandboxes) Name() string { return "none" }

// Capabilities promise nothing.
func (NoSandboxes) Capabilities() sandbox.Capabilities { return sandbox.Capabilities{} }

// Check passes: there is nothing that could be missing.
func (NoSandboxes) Check(context.Context) error { return nil }

// Create refuses every sandbox.
func (NoSandboxes) Create(context.Context, sandbox.Spec) (sandbox.Sandbox, error) {
	return nil, fmt.Errorf("this cube runs without sandboxes: %w", sandbox.ErrUnsupported)
}
