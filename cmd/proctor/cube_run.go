package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/trial"
)

func newCubeRun(env *Env) *cobra.Command {
	var only []string
	cmd := &cobra.Command{
		Use:   "run CUBE",
		Short: "Run agents on a cube's tasks and score them",
		Long: `run plays an episode of each task as a trial and writes a job directory, as
'proctor run' does. The agents are oracle (the cube's debug agent), nop, and
scripted, which plays the actions of a JSON file:

  [{"name": "bash", "arguments": {"command": "echo hi"}}, {"name": "final_step"}]

For a directory of Harbor tasks it is 'proctor run -p'.`,
		Example: `  proctor cube run arithmetic-cube
  proctor cube run examples/tasks/hello-world -a scripted --ak actions=actions.json -e host`,
		Args: oneCube,
	}
	f := defineRunFlags(cmd)
	cmd.Flags().StringArrayVar(&only, "only", nil, "of a registered cube only the tasks that match the `glob`; repeatable")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := findCube(env, args[0])
		if err != nil {
			return err
		}
		if s.shipped == nil {
			f.set.Path = &s.path
			return runJob(cmd.Context(), env, f)
		}
		return runCube(cmd.Context(), env, s, f, &cubeFlags{tasks: only})
	}
	return cmd
}

// runCube runs the tasks of a registered cube as a job.
func runCube(ctx context.Context, env *Env, s *subject, f *runFlags, choice *cubeFlags) error {
	if f.sealed {
		return usageErrorf("--sealed-verifier: the tasks of a cube judge themselves, only Harbor tasks have a verifier that can be sealed")
	}
	cfg, names, err := configure(env, f)
	if err != nil {
		return err
	}
	backend, closeBackend := sandbox.Backend(noSandboxes{}), func() error { return nil }
	if s.needs {
		name, opts, err := chooseEnvironment(ctx, env, &cfg, f.runtime, names.backend)
		if err != nil {
			return err
		}
		if backend, closeBackend, err = readyBackend(ctx, env, name, opts); err != nil {
			return err
		}
	}
	defer func() { _ = closeBackend() }()
	dirs, err := findDirectories(env)
	if err != nil {
		return err
	}
	r := cube.NewRegistry(cube.Options{CacheRoot: dirs.cacheOfCubes(), Sandbox: backend})
	sel, err := s.choose(r, cube.Options{}, choice)
	if err != nil {
		return err
	}
	if err := sel.Install(ctx); err != nil {
		return fmt.Errorf("installing %s: %w", s.name, err)
	}
	bench, err := sel.Make(ctx, nil)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", s.name, err)
	}
	release, err := claimName(&cfg, names)
	if err != nil {
		return errors.Join(err, bench.Close(context.WithoutCancel(ctx)))
	}
	defer release()
	prepared, find, err := planCube(env, s, cfg, r, bench)
	if err == nil {
		f.cube = find
		var out *job.Outcome
		if out, err = execute(ctx, env, f, prepared, backend); err == nil {
			err = finishRun(env, f, prepared, out)
		}
	}
	return errors.Join(err, bench.Close(context.WithoutCancel(ctx)))
}

// planCube plans a trial per task, agent and attempt. find gives each trial its
// task.
func planCube(env *Env, s *subject, cfg jobdir.Config, r *cube.Registry, bench *cube.Benchmark) (*job.Prepared, func(jobdir.TrialConfig) (*trial.CubeTask, error), error) {
	if isFile(resultFile(cfg.Dir())) {
		return nil, nil, usageErrorf("job directory %q has results already: choose another name with --job-name", cfg.Dir())
	}
	configs := map[string]cube.TaskConfig{}
	var tasks []jobdir.Task
	for c, err := range bench.TaskConfigs() {
		if err != nil {
			return nil, nil, err
		}
		path := trial.CubePath(bench.Name(), c.TaskID())
		configs[path] = c
		task := jobdir.TaskConfig{Path: &path}
		tasks, cfg.Tasks = append(tasks, jobdir.Task{Config: task, Name: c.TaskMetadata().Base().ID}), append(cfg.Tasks, task)
	}
	own, err := score.ConfiguredMetrics(cfg.Metrics)
	if err != nil {
		return nil, nil, usageErrorf("%w", err)
	}
	p := &job.Prepared{
		Config: cfg, ID: uuid.New(), StartedAt: jobdir.Local(env.Now()),
		Metrics: score.NewMetrics(own, nil),
	}
	if p.Trials, err = job.Plan(cfg, p.ID, tasks, rand.IntN); err != nil {
		return nil, nil, err
	}
	for i := range p.Trials {
		p.Remaining = append(p.Remaining, i)
	}
	return p, func(tc jobdir.TrialConfig) (*trial.CubeTask, error) {
		return cubeTaskOf(s, configs[*tc.Task.Path], r, bench)
	}, nil
}

// cubeTaskOf is a task as trials take it. Its content is its config.
func cubeTaskOf(s *subject, c cube.TaskConfig, r *cube.Registry, bench *cube.Benchmark) (*trial.CubeTask, error) {
	data, err := cube.Marshal(c)
	if err != nil {
		return nil, err
	}
	leaf, err := bench.Leaf(c)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	return &trial.CubeTask{
		Name:     bench.Name() + "/" + c.TaskID(),
		Checksum: hex.EncodeToString(sum[:]),
		Oracle:   s.agent(c),
		Make: func(ctx context.Context, b sandbox.Backend) (*cube.Task, error) {
			var launcher cube.ContainerBackend
			if s.needs {
				launcher = cube.NewLocalContainerBackend(b)
			}
			return r.MakeTask(ctx, c, leaf.RuntimeContext(), launcher)
		},
	}, nil
}

// noSandboxes is the backend of cubes that need none.
type noSandboxes struct{}

var _ sandbox.Backend = noSandboxes{}

func (noSandboxes) Name() string                       { return "none" }
func (noSandboxes) Capabilities() sandbox.Capabilities { return sandbox.Capabilities{} }
func (noSandboxes) Check(context.Context) error        { return nil }

func (noSandboxes) Create(context.Context, sandbox.Spec) (sandbox.Sandbox, error) {
	return nil, fmt.Errorf("this cube runs without sandboxes: %w", sandbox.ErrUnsupported)
}
