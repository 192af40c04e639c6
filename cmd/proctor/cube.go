package main

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubes"
	harborcube "github.com/proctor-run/proctor/cube/cubes/harbor"
	"github.com/proctor-run/proctor/cubecli"
	"github.com/proctor-run/proctor/cubecli/sandboxes"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/sandbox"
)

func newCube(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cube",
		Short: "List, show, test, run and make cubes: benchmarks as CUBE describes them",
		Long: `cube works with benchmarks as tasks that an agent meets through actions and
observations. A cube is named by the name it is registered under, or by the path
of a Harbor task directory or of a directory of them.

A cube of your own comes with the same commands: 'proctor cube init NAME' makes
a Go module to start from, and docs/cube.md says the rest.`,
		Example: `  proctor cube show arithmetic-cube
  proctor cube test examples/tasks/hello-world -e host
  proctor cube run arithmetic-cube
  proctor cube init word-puzzles`,
		Args: noUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(cubeProgram(env).Commands()...)
	cmd.AddCommand(newCubeRun(env), newCubeInit(env))
	return cmd
}

// cubeProgram has the shipped cubes; Harbor directories are found by their
// paths.
func cubeProgram(env *Env) *cubecli.Program {
	p := &cubecli.Program{
		Name: "proctor cube", Find: func(name string) (*cubecli.Cube, error) { return findHarborCube(env, name) },
		Sandboxes: func(ctx context.Context, o cubecli.SandboxOptions) (sandbox.Backend, func() error, error) {
			return readyBackend(ctx, env, backendOptions{name: o.Environment, Options: sandboxes.Options{Runtime: o.Runtime, Mask: o.Mask, Hardened: o.Hardened, AllowRemoteEngine: o.AllowRemoteEngine}})
		},
		Environments: backends().Names(),
		Args:         env.Args, Stdout: env.Stdout, Stderr: env.Stderr, Lookup: env.Lookup, Now: env.Now, Signals: env.Signals,
	}
	for _, c := range cubes.All() {
		p.Cubes = append(p.Cubes, cubecli.Cube{Name: c.Name, Register: cubes.Register, Config: c.Config, Agent: c.Agent, NeedsContainer: c.NeedsContainer})
	}
	return p
}

// findHarborCube finds the tasks of a directory; nil when it is none.
func findHarborCube(env *Env, path string) (*cubecli.Cube, error) {
	if !isDirectory(path) {
		return nil, nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	load := func(r *cube.Registry, b cube.ContainerBackend) (cube.BenchmarkConfig, error) {
		cfg, err := harborcube.Register(r, harborcube.Options{Path: abs, Lookup: env.Lookup, Oracle: true})
		if err != nil {
			return nil, err
		}
		if b != nil {
			cfg.Base().ContainerBackend = b
		}
		return cfg, nil
	}
	cfg, err := harborcube.Register(cube.NewRegistry(cube.Options{}), harborcube.Options{Path: abs, Lookup: env.Lookup, Oracle: true})
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
	// Their solution lies in the sandboxes, for the debug agent.
	return &cubecli.Cube{
		Name: def.Metadata.Name, Load: load, NeedsContainer: true, Mask: []string{abs},
		Agent: func(c cube.TaskConfig) cube.Agent { return harborOracle(env, tasks[c.TaskMetadata().Base().ID]) },
		Goal:  func(id string) float64 { return tasks[id].OracleReward },
		// What tests print has process ids and times in it.
		VolatileInfo: []string{"output_preview"},
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
