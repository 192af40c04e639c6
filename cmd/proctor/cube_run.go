package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cubecli"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
)

func newCubeRun(env *Env) *cobra.Command {
	choice := &cubecli.Choice{}
	cmd := &cobra.Command{
		Use:   "run CUBE",
		Short: "Run agents on a cube's tasks and score them",
		Long: `run plays an episode of each task as a trial and writes a job directory, as
'proctor run' does. The agents are oracle (the cube's debug agent), nop, and
scripted, which plays the actions of a JSON file:

  [{"name": "bash", "arguments": {"command": "echo hi"}}, {"name": "final_step"}]

For a directory of Harbor tasks it is 'proctor run -p', with the same agents.
Settings that only Harbor's tasks have, such as artifacts and skills, are refused
for other cubes.`,
		Example: `  proctor cube run arithmetic-cube
  proctor cube run arithmetic-cube -t 'add-*' -l 1 -k 3
  proctor cube run examples/tasks/hello-world -a scripted --ak actions=actions.json -e host`,
	}
	f := defineCubeRunFlags(cmd, choice)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return withHint(usageErrorf("accepts one cube, by its name or as a directory of Harbor tasks; got %d", len(args)), "'proctor cube list' lists the names")
		}
		c, err := cubeProgram(env).FindCube(args[0])
		if err != nil {
			return err
		}
		if c.Load != nil { // Harbor's tasks
			f.set.Path, f.set.IncludeTasks, f.set.ExcludeTasks, f.set.NTasks = &args[0], choice.Include, choice.Exclude, choice.Limit
			return runJob(cmd.Context(), env, f)
		}
		if err := checkCubeFlags(cmd.Flags()); err != nil {
			return err
		}
		return runCube(cmd.Context(), env, c, f, *choice)
	}
	return cmd
}

// defineCubeRunFlags defines the flags of run, with those that choose tasks as
// the other commands of cubes have them.
func defineCubeRunFlags(cmd *cobra.Command, choice *cubecli.Choice) *runFlags {
	fs := cmd.Flags()
	listVar(fs, &choice.Include, "task", "t", "only the tasks that match the `glob`; repeatable", "only")
	listVar(fs, &choice.Include, "include-task-name", "i", "the same, as for run")
	listVar(fs, &choice.Exclude, "exclude-task-name", "x", "leave out the tasks that match this `glob`; repeatable")
	optionalVar(fs, &choice.Limit, parseInt, "n-tasks", "l", "run at most this `number` of tasks")
	const why = "the cube is named as the argument"
	refuseVar(fs, why, false, "dataset", "registry-url", "registry-path", "task-git-url", "task-git-commit")
	fs.VarPF(refused{refusedError{why}}, "path", "p", "not supported: "+why).Hidden = true
	f := defineRunFlagsBut(cmd, func(fs *pflag.FlagSet, f *runFlags) { defineExtraFlags(fs, f) })
	fs.Lookup("agent").Usage = "the `agent`: oracle, nop, scripted; of Harbor's tasks also command (default oracle)"
	return f
}

// harborOnly are flags that mean something for Harbor's tasks alone, each with
// the reason.
var harborOnly = map[string]string{
	"artifact": "the tasks of a cube have no artifacts", "extra-instruction-path": "the first observation is the cube's own",
	"skill": "the agents of cubes take no skills", "skills": "the agents of cubes take no skills", "mcp-config": "the agents of cubes take no MCP servers",
	"ve": "a cube judges itself", "verifier-env": "a cube judges itself", "verifier-kwarg": "a cube judges itself", "verifier-import-path": "a cube judges itself",
	"sealed-verifier": "the tasks of a cube judge themselves, only Harbor tasks have a verifier that can be sealed",
	"ae":              "the agents of cubes run no commands of their own", "agent-env": "the agents of cubes run no commands of their own",
	"allow-agent-host": "networks are the cube's own", "allow-environment-host": "networks are the cube's own",
	"force-build": "containers are the cube's own", "no-force-build": "containers are the cube's own", "no-delete": "containers are the cube's own",
	"cpus": "containers are the cube's own", "memory": "containers are the cube's own", "override-cpus": "containers are the cube's own",
	"override-memory-mb": "containers are the cube's own", "override-storage-mb": "containers are the cube's own",
	"override-gpus": "containers are the cube's own", "override-tpu": "containers are the cube's own",
	"mounts": "containers are the cube's own", "mounts-json": "containers are the cube's own", "extra-docker-compose": "containers are the cube's own",
	"environment-build-timeout-multiplier": "making a cube's task has no limit of its own", "agent-setup-timeout-multiplier": "the agents of cubes have no set-up",
}

// checkCubeFlags refuses what a registered cube would ignore.
func checkCubeFlags(fs *pflag.FlagSet) (err error) {
	fs.Visit(func(f *pflag.Flag) {
		if why, ok := harborOnly[f.Name]; ok && err == nil {
			err = usageErrorf("--%s is not supported for this cube: %s", f.Name, why)
		}
	})
	return err
}

// checkCubeConfig refuses what a configuration says that a registered cube
// would ignore.
func checkCubeConfig(cfg jobdir.Config) error {
	switch {
	case len(cfg.Tasks)+len(cfg.Datasets) > 0:
		return usageErrorf("the configuration names tasks, and the cube is named as the argument")
	case len(cfg.Artifacts) > 0:
		return usageErrorf("the configuration names artifacts: %s", harborOnly["artifact"])
	case len(cfg.ExtraInstructionPaths) > 0:
		return usageErrorf("the configuration names extra instructions: %s", harborOnly["extra-instruction-path"])
	}
	return checkAgents(cfg, true)
}

// runCube runs the tasks of a registered cube as a job.
func runCube(ctx context.Context, env *Env, s *cubecli.Cube, f *runFlags, choice cubecli.Choice) (err error) {
	cfg, names, err := configure(env, f)
	if err != nil {
		return err
	}
	if err := checkCubeConfig(cfg); err != nil {
		return err
	}
	var opts backendOptions
	if s.NeedsContainer {
		if cfg.Environment, opts, err = chooseEnvironment(ctx, env, cfg.Environment, f.runtime, names.backend); err != nil {
			return err
		}
		opts.Mask = hiddenOfConfig(env, cfg)
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
func openCubesFor(ctx context.Context, env *Env, opts backendOptions, choice cubecli.Choice, subjects ...*cubecli.Cube) (_ *openCubes, err error) {
	open := &openCubes{cubes: &job.Cubes{}, backend: job.NoSandboxes{}, closeBackend: func() error { return nil }}
	if slices.ContainsFunc(subjects, func(s *cubecli.Cube) bool { return s.NeedsContainer }) {
		if open.backend, open.closeBackend, err = readyBackend(ctx, env, opts); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, open.close(ctx))
		}
	}()
	cache, err := cacheOfCubes(env)
	if err != nil {
		return nil, err
	}
	for _, s := range subjects {
		r := cube.NewRegistry(cube.Options{CacheRoot: cache, Sandbox: open.backend})
		sel, err := s.Select(r, nil, choice)
		if err != nil {
			return nil, err
		}
		tasks, err := open.cubes.Add(ctx, job.CubeSource{Registry: r, Selection: sel, Oracle: s.Agent, Containers: s.NeedsContainer})
		if err != nil {
			return nil, err
		}
		open.tasks = append(open.tasks, tasks...)
	}
	return open, nil
}

// reopenCubes sets up the cubes whose tasks a job has that is to be resumed.
func reopenCubes(ctx context.Context, env *Env, cfg jobdir.Config, opts backendOptions) (*openCubes, error) {
	var subjects []*cubecli.Cube
	for _, name := range job.CubesOf(cfg, isDirectory) {
		s, err := cubeProgram(env).FindCube(name)
		if err != nil || s.Load != nil {
			return nil, withHint(usageErrorf("the job has tasks of cube %q, which is not one of proctor's", name), "resume it with the program that started it")
		}
		subjects = append(subjects, s)
	}
	if len(subjects) == 0 {
		return &openCubes{}, nil
	}
	return openCubesFor(ctx, env, opts, cubecli.Choice{}, subjects...)
}
