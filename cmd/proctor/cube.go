package main

import (
	"context"

	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubes"
	harborcube "github.com/proctor-run/proctor/cube/cubes/harbor"
	"github.com/proctor-run/proctor/cube/cubetest"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/sandbox"
)

func newCube(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cube",
		Short: "List, show, test and run cubes: benchmarks as CUBE describes them",
		Long: `cube works with benchmarks as tasks that an agent meets through actions and
observations. A cube is named by the name it is registered under, or by the path
of a Harbor task directory or of a directory of them.`,
		Args: noUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCubeList(env), newCubeShow(env), newCubeTest(env), newCubeRun(env), newCubeInstall(env))
	return cmd
}

// cubeFlags are those of commands that need a cube's tasks.
type cubeFlags struct {
	json        bool
	environment string
	runtime     string
	tasks       []string
}

func (f *cubeFlags) define(cmd *cobra.Command, needsSandbox bool) {
	cmd.Flags().BoolVar(&f.json, "json", false, "write JSON to standard output")
	cmd.Flags().StringArrayVarP(&f.tasks, "task", "t", nil, "only the tasks that match the glob; may be repeated")
	if needsSandbox {
		cmd.Flags().StringVarP(&f.environment, "env", "e", "", "where containers run: auto, docker, sandbox, host (default auto)")
		cmd.Flags().StringVar(&f.runtime, "runtime", "", "OCI runtime of -e sandbox and -e host: gvisor, runc, crun")
	}
}

// subject is a cube that was found by its name or path.
type subject struct {
	name     string
	path     string // of Harbor tasks
	shipped  *cubes.Cube
	register func(*cube.Registry) (cube.BenchmarkConfig, error)
	// agent solves a task, goal is the reward that it reaches.
	agent cubetest.DebugAgent
	goal  func(taskID string) float64
	// volatile are keys of info that differ from one evaluation to the next.
	volatile []string
	needs    bool // containers
}

// oneCube refuses anything but one name.
func oneCube(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return withHint(usageErrorf("one cube is needed, by its name or as a directory of Harbor tasks; %d are given", len(args)), "'proctor cube list' lists the names")
	}
	return nil
}

// findCube finds a cube by its name, else as a directory.
func findCube(env *Env, name string) (*subject, error) {
	for _, c := range cubes.All() {
		if c.Name == name {
			return shippedCube(c), nil
		}
	}
	if !isDirectory(name) {
		var names []string
		for _, c := range cubes.All() {
			names = append(names, c.Name)
		}
		return nil, withHint(usageErrorf("there is no cube and no directory %q", name), "cubes are: %s", strings.Join(names, ", "))
	}
	return harborCube(env, name)
}

func shippedCube(c cubes.Cube) *subject {
	return &subject{
		name: c.Name, shipped: &c, agent: c.Agent, needs: c.NeedsContainer,
		register: func(r *cube.Registry) (cube.BenchmarkConfig, error) {
			return c.Config(&cube.LocalContainerBackend{}), cubes.Register(r)
		},
	}
}

// harborCube offers the tasks of a directory; in their sandboxes lies their
// solution, for the debug agent.
func harborCube(env *Env, path string) (*subject, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	register := func(r *cube.Registry, oracle bool) (*harborcube.Config, error) {
		return harborcube.Register(r, harborcube.Options{Path: abs, Host: env.Lookup, Oracle: oracle})
	}
	cfg, err := register(cube.NewRegistry(cube.Options{}), true)
	if err != nil {
		return nil, withHint(usageErrorf("%w", err), "a Harbor task is a directory with task.toml and instruction.md")
	}
	def, err := cfg.Define()
	if err != nil {
		return nil, err
	}
	tasks := map[string]*harborcube.Metadata{}
	for _, m := range def.Tasks {
		tasks[m.Base().ID] = m.(*harborcube.Metadata)
	}
	return &subject{
		name: def.Metadata.Name, path: abs, needs: true,
		register: func(r *cube.Registry) (cube.BenchmarkConfig, error) {
			c, err := register(r, true)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		agent: func(c cube.TaskConfig) cube.Agent { return harborOracle(env, tasks[c.TaskMetadata().Base().ID]) },
		goal:  func(id string) float64 { return tasks[id].OracleReward },
		// What tests print has process ids and times in it.
		volatile: []string{"output_preview"},
	}, nil
}

// harborOracle plays a task's solution.
func harborOracle(env *Env, m *harborcube.Metadata) cube.Agent {
	t, err := harbor.Load(m.Path, harbor.LoadOptions{})
	var actions []cube.Action
	if err == nil {
		actions, err = harborcube.OracleActions(t, env.Lookup)
	}
	if err != nil {
		return cube.AgentFunc(func(context.Context, *cube.Observation, []cube.ActionSchema) ([]cube.Action, error) {
			return nil, err
		})
	}
	return cube.Script(actions...)
}

// options returns a registry's options; the cache is in proctor's directory
// unless cacheRoot names another.
func (s *subject) options(ctx context.Context, env *Env, f *cubeFlags, cacheRoot string) (o cube.Options, done func() error, err error) {
	done = func() error { return nil }
	if cacheRoot == "" {
		dirs, err := findDirectories(env)
		if err != nil {
			return o, nil, err
		}
		cacheRoot = dirs.cacheOfCubes()
	}
	o.CacheRoot = cacheRoot
	if !s.needs {
		return o, done, nil
	}
	o.Sandbox, done, err = f.openSandboxes(ctx, env, s.path)
	return o, done, err
}

// choose registers the cube and selects the tasks of the flags.
func (s *subject) choose(r *cube.Registry, o cube.Options, f *cubeFlags) (*cube.Selection, error) {
	cfg, err := s.register(r)
	if err != nil {
		return nil, err
	}
	if o.Sandbox != nil {
		cfg = s.withBackend(cfg, cube.NewLocalContainerBackend(o.Sandbox))
	}
	sel, err := r.Select(cfg)
	if err != nil || len(f.tasks) == 0 {
		return sel, err
	}
	tasks, err := sel.Tasks()
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range tasks {
		for _, pattern := range f.tasks {
			if harbor.Match(pattern, e.ID) {
				ids = append(ids, e.ID)
				break
			}
		}
	}
	if len(ids) == 0 {
		return nil, usageErrorf("no task of %s matches %s", s.name, strings.Join(f.tasks, ", "))
	}
	return sel.Subset(ids...)
}

func (s *subject) withBackend(cfg cube.BenchmarkConfig, b cube.ContainerBackend) cube.BenchmarkConfig {
	if s.shipped != nil {
		return s.shipped.Config(b)
	}
	cfg.Base().ContainerBackend = b
	return cfg
}

func newCubeInstall(env *Env) *cobra.Command {
	var f cubeFlags
	cmd := &cobra.Command{
		Use:     "install CUBE",
		Short:   "Download what a cube's tasks need",
		Example: `  proctor cube install arithmetic-cube`,
		Args:    oneCube,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := findCube(env, args[0])
			if err != nil {
				return err
			}
			s.needs = false // installing runs nothing
			o, done, err := s.options(cmd.Context(), env, &f, "")
			if err != nil {
				return err
			}
			defer func() { _ = done() }()
			sel, err := s.choose(cube.NewRegistry(o), o, &f)
			if err != nil {
				return err
			}
			if err := sel.Install(cmd.Context()); err != nil {
				return fmt.Errorf("installing %s: %w", s.name, err)
			}
			return printInstalled(env, &f, sel, o.CacheRoot)
		},
	}
	f.define(cmd, false)
	return cmd
}

func printInstalled(env *Env, f *cubeFlags, sel *cube.Selection, root string) error {
	n, err := sel.NumTasks()
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(env, cube.Pairs("name", sel.Name(), "tasks", n, "cache", filepath.Join(root, sel.Name()), "installable", sel.Installable()))
	}
	if !sel.Installable() {
		fmt.Fprintf(env.Stdout, "%s: nothing to install\n", clean(sel.Name()))
		return nil
	}
	fmt.Fprintf(env.Stdout, "%s: %s installed\n", clean(sel.Name()), count(n, "task"))
	return nil
}

// temporaryCache is a cache directory of one command.
func temporaryCache() (dir string, remove func() error, err error) {
	dir, err = os.MkdirTemp("", "proctor-cube-")
	return dir, func() error { return os.RemoveAll(dir) }, err
}

// openSandboxes opens the backend that the flags choose, as run does.
func (f *cubeFlags) openSandboxes(ctx context.Context, env *Env, tasks string) (b sandbox.Backend, done func() error, err error) {
	name, err := chooseBackend(ctx, env, f.environment, f.runtime)
	if err != nil {
		return nil, nil, err
	}
	opts := backendOptions{name: name, runtime: f.runtime}
	if tasks != "" {
		opts.mask = []string{tasks}
	}
	return readyBackend(ctx, env, opts)
}

// cacheOfCubes is where installed cubes lie.
func (d directories) cacheOfCubes() string { return filepath.Join(d.cache, "cubes") }
