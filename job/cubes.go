package job

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	// Selection of its tasks.
	Selection *cube.Selection
	// Oracle makes the agent that solves a task; nil when nobody can.
	Oracle func(cube.TaskConfig) cube.Agent
	// Infra provisions the benchmark's resources and launches them; nil when it
	// needs none. Benchmarks whose resources nobody provisions are refused.
	Infra cube.Infra
}

// Add installs a benchmark, sets it up and adds its selected tasks, each as often
// as it has seeds. It returns them as a job's configuration has them. The benchmark
// is closed by Close.
func (c *Cubes) Add(ctx context.Context, s CubeSource) ([]jobdir.TaskConfig, error) {
	if err := s.checkResources(); err != nil {
		return nil, err
	}
	if err := s.Selection.Install(ctx); err != nil {
		return nil, fmt.Errorf("installing %s: %w", s.Selection.Name(), err)
	}
	bench, err := s.Selection.Make(ctx, s.Infra)
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
		path := trial.CubePath(bench.Name(), config.TaskID(), config.Common().Seed)
		if err := c.add(path, task); err != nil {
			return nil, err
		}
		list = append(list, jobdir.TaskConfig{Path: &path})
	}
	return list, nil
}

// take takes over the benchmarks and tasks of others.
func (c *Cubes) take(others *Cubes) error {
	c.benches = append(c.benches, others.benches...)
	for path, task := range others.tasks {
		if err := c.add(path, task); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cubes) add(path string, task *trial.CubeTask) error {
	if c.tasks[path] != nil {
		return fmt.Errorf("the task config of %q is there twice", path)
	}
	if c.tasks == nil {
		c.tasks = map[string]*trial.CubeTask{}
	}
	c.tasks[path] = task
	return nil
}

// checkResources refuses a benchmark whose resources nobody provisions: its tasks
// would run without what they need, and be scored all the same.
func (s CubeSource) checkResources() error {
	if s.Infra != nil {
		return nil
	}
	names := resourcesOf(s.Selection.Config())
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%s needs %s, which nothing provisions: its program must give the cube an infra", s.Selection.Name(), strings.Join(names, ", "))
}

// resourcesOf describes the resources of a benchmark and of its parts.
func resourcesOf(cfg cube.BenchmarkConfig) []string {
	var names []string
	for _, r := range cfg.Base().Resources {
		names = append(names, fmt.Sprintf("%q (%s)", r.Base().Name, r.TypeName()))
	}
	if c, ok := cfg.(*cube.CompositeBenchmarkConfig); ok {
		for _, sub := range c.SubBenchConfigs {
			names = append(names, resourcesOf(sub)...)
		}
	}
	return names
}

// task is a cube's task as trials take it. Its content is its config.
func (s CubeSource) task(bench *cube.Benchmark, config cube.TaskConfig) (*trial.CubeTask, error) {
	data, err := cube.Marshal(config)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	t := &trial.CubeTask{
		Name:     bench.Name() + "/" + trial.SeededID(config.TaskID(), config.Common().Seed),
		Checksum: hex.EncodeToString(sum[:]),
		Make: func(ctx context.Context, b sandbox.Backend) (*cube.Task, error) {
			return bench.Spawn(withBackend(ctx, b), config)
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

// has reports whether a configuration names a task of one of these benchmarks,
// which the benchmark may not have.
func (c *Cubes) has(t jobdir.TaskConfig) bool {
	if c == nil || t.Kind() != jobdir.LocalTask || t.Path == nil {
		return false
	}
	name, ok := trial.CubeOf(*t.Path)
	return ok && slices.ContainsFunc(c.benches, func(b *cube.Benchmark) bool { return b.Name() == name })
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

// CubesOf names the benchmarks whose tasks a configuration names. A path at which a
// Harbor task lies is that task.
func CubesOf(cfg jobdir.Config) []string {
	var names []string
	seen := map[string]bool{}
	for _, t := range cfg.Tasks {
		if t.Kind() != jobdir.LocalTask || t.Path == nil {
			continue
		}
		name, ok := trial.CubeOf(*t.Path)
		if !ok || seen[name] {
			continue
		}
		if _, err := os.Stat(filepath.Join(*t.Path, "task.toml")); err != nil {
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
