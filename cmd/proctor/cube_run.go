package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
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
		if f.sealed {
			return usageErrorf("--sealed-verifier: the tasks of a cube judge themselves, only Harbor tasks have a verifier that can be sealed")
		}
		return runCube(cmd.Context(), env, s, f, &cubeFlags{tasks: only})
	}
	return cmd
}

// runCube runs the tasks of a registered cube as a job.
func runCube(ctx context.Context, env *Env, s *subject, f *runFlags, choice *cubeFlags) (err error) {
	cfg, names, err := configure(env, f)
	if err != nil {
		return err
	}
	if err := checkAgents(cfg, true); err != nil {
		return err
	}
	var opts backendOptions
	if s.needs {
		if cfg.Environment, opts, err = chooseEnvironment(ctx, env, cfg.Environment, f.runtime, names.backend); err != nil {
			return err
		}
		opts.mask = hiddenOfConfig(env, cfg)
	}
	release, err := claimName(&cfg, names)
	if err != nil {
		return err
	}
	defer release()
	guard, err := guardJob(env, cfg.Dir())
	if err != nil {
		return err
	}
	defer func() { _ = guard.Release() }()
	open, err := openCubesFor(ctx, env, opts, choice, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, open.close(ctx)) }()
	cfg.Tasks = open.tasks
	options := prepareOptions(ctx, env)
	options.AcceptHarmless, options.Cubes = f.acceptHarmless, open.cubes
	prepared, err := job.Prepare(cfg, options)
	if err != nil {
		return prepareError(err)
	}
	out, err := execute(ctx, env, f, execution{prepared: prepared, backend: open.backend, guard: guard, cubes: open.cubes})
	if err != nil {
		return err
	}
	return finishRun(env, f, prepared, out)
}

// openCubes are cubes that have been set up, with the backend that their
// containers run in.
type openCubes struct {
	cubes   *job.Cubes
	tasks   []jobdir.TaskConfig
	backend sandbox.Backend // nil without cubes

	closeBackend func() error
}

// close closes the cubes before their backend.
func (o *openCubes) close(ctx context.Context) error {
	if o.cubes == nil {
		return nil
	}
	return errors.Join(o.cubes.Close(context.WithoutCancel(ctx)), o.closeBackend())
}

// openCubesFor sets up the tasks of cubes that the flags choose. The backend is
// opened when one of them needs it.
func openCubesFor(ctx context.Context, env *Env, opts backendOptions, choice *cubeFlags, subjects ...*subject) (_ *openCubes, err error) {
	open := &openCubes{cubes: &job.Cubes{}, backend: noSandboxes{}, closeBackend: func() error { return nil }}
	if slices.ContainsFunc(subjects, func(s *subject) bool { return s.needs }) {
		if open.backend, open.closeBackend, err = readyBackend(ctx, env, opts); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, open.close(ctx))
		}
	}()
	dirs, err := findDirectories(env)
	if err != nil {
		return nil, err
	}
	for _, s := range subjects {
		r := cube.NewRegistry(cube.Options{CacheRoot: dirs.cacheOfCubes(), Sandbox: open.backend})
		sel, err := s.choose(r, cube.Options{}, choice)
		if err != nil {
			return nil, err
		}
		tasks, err := open.cubes.Add(ctx, job.CubeSource{Registry: r, Selection: sel, Oracle: s.agent, Containers: s.needs})
		if err != nil {
			return nil, err
		}
		open.tasks = append(open.tasks, tasks...)
	}
	return open, nil
}

// reopenCubes sets up the cubes whose tasks a job has that is to be resumed.
func reopenCubes(ctx context.Context, env *Env, cfg jobdir.Config, opts backendOptions) (*openCubes, error) {
	var subjects []*subject
	for _, name := range job.CubesOf(cfg, isDirectory) {
		s, err := findCube(env, name)
		if err != nil || s.shipped == nil {
			return nil, withHint(usageErrorf("the job has tasks of cube %q, which is not one of proctor's", name), "resume it with the program that started it")
		}
		subjects = append(subjects, s)
	}
	if len(subjects) == 0 {
		return &openCubes{}, nil
	}
	return openCubesFor(ctx, env, opts, &cubeFlags{}, subjects...)
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
