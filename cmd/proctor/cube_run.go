package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/proctor-run/proctor/cubecli"
	"github.com/proctor-run/proctor/internal/flags"
	"github.com/proctor-run/proctor/internal/interrupt"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
)

func newCubeRun(env *Env) *cobra.Command {
	choice := &cubecli.Choice{}
	cmd := &cobra.Command{
		Use:   "run CUBE",
		Short: "Run agents on a cube's tasks and score them",
		Long: `run plays an episode of each task as a trial and writes a job directory, as
'proctor run' does. The agents are oracle (the cube's debug agent), nop, tools,
which calls a model with the actions as its tools, and scripted, which plays the
actions of a JSON file:

  [{"name": "bash", "arguments": {"command": "echo hi"}}, {"name": "final_step"}]

An agent that is known by name, or any other that uses MCP servers, plays from a
sandbox of its own, where the actions are the tools of such a server.

For a directory of Harbor tasks it is 'proctor run -p', with the same agents.
Settings that only Harbor's tasks have, such as artifacts and skills, are refused
for other cubes.`,
		Example: `  proctor cube run arithmetic-cube
  proctor cube run arithmetic-cube -t 'add-*' -l 1 -k 3
  proctor cube run arithmetic-cube -a tools -m openai/gpt-5-mini
  proctor cube run arithmetic-cube -a claude-code -m anthropic/claude-sonnet-4-5
  proctor cube run examples/tasks/hello-world -a scripted --ak actions=actions.json -e host`,
	}
	f := defineCubeRunFlags(env, cmd, choice)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return withHint(usageErrorf("accepts one cube, by its name or as a directory of Harbor tasks; got %d", len(args)), "'proctor cube list' lists the names")
		}
		return program(env).WithLine(f, func() error { return runNamedCube(cmd, env, args[0], cubeRun{f, cmd.Flags(), *choice}) })
	}
	return cmd
}

// runNamedCube runs the tasks of a cube, which may be a directory of Harbor's.
func runNamedCube(cmd *cobra.Command, env *Env, name string, f cubeRun) error {
	c, err := cubeProgram(env).FindCube(name)
	if err != nil {
		return err
	}
	if c.Load == nil {
		return runCube(cmd.Context(), env, c, f)
	}
	if f.choice.Subset != "" {
		return usageErrorf("--subset is not supported for a directory of Harbor tasks: they name no subsets")
	}
	f.Set.Path, f.Set.IncludeTasks, f.Set.ExcludeTasks, f.Set.NTasks = &name, f.choice.Include, f.choice.Exclude, f.choice.Limit
	return runJob(cmd.Context(), env, f.Flags)
}

// defineCubeRunFlags defines the flags of run, with those that choose tasks as
// the other commands of cubes have them.
func defineCubeRunFlags(env *Env, cmd *cobra.Command, choice *cubecli.Choice) *jobcli.Flags {
	fs := cmd.Flags()
	choice.DefineSubset(fs)
	flags.List(fs, &choice.Include, "task", "t", "only the tasks that match the `glob`; repeatable", "only")
	flags.List(fs, &choice.Include, "include-task-name", "i", "the same, as for run")
	flags.List(fs, &choice.Exclude, "exclude-task-name", "x", "leave out the tasks that match this `glob`; repeatable")
	flags.Optional(fs, &choice.Limit, flags.AtLeast(1), "n-tasks", "l", "run at most this `number` of tasks")
	const why = "the cube is named as the argument"
	flags.Refuse(fs, why, false, "dataset", "registry-url", "registry-path", "task-git-url", "task-git-commit")
	flags.RefuseShort(fs, why, "path", "p")
	f := program(env).NewFlags()
	program(env).DefineRun(cmd, f, jobcli.DefineExtra)
	fs.Lookup("agent").Usage = "the `agent`: oracle, nop, tools, scripted, or one that uses MCP servers; of Harbor's tasks any (default oracle)"
	return f
}

// harborOnly are flags that mean something for Harbor's tasks alone, each with
// the reason.
var harborOnly = map[string]string{
	"artifact": "the tasks of a cube have no artifacts", "extra-instruction-path": "the first observation is the cube's own",
	"ve": "a cube judges itself", "verifier-env": "a cube judges itself", "verifier-kwarg": "a cube judges itself", "verifier-import-path": "a cube judges itself",
	"sealed-verifier":        "the tasks of a cube judge themselves, only Harbor tasks have a verifier that can be sealed",
	"allow-environment-host": "networks are the cube's own",
	"force-build":            "containers are the cube's own", "no-force-build": "containers are the cube's own", "no-delete": "containers are the cube's own",
	"cpus": "containers are the cube's own", "memory": "containers are the cube's own", "override-cpus": "containers are the cube's own",
	"override-memory-mb": "containers are the cube's own", "override-storage-mb": "containers are the cube's own",
	"override-gpus": "containers are the cube's own", "override-tpu": "containers are the cube's own",
	"allow-engine-socket": "containers are the cube's own",
	"mounts":              "containers are the cube's own", "mounts-json": "containers are the cube's own", "extra-docker-compose": "containers are the cube's own",
}

// sandboxedOnly are flags that mean something for agents in a sandbox alone, each with the
// reason.
var sandboxedOnly = map[string]string{
	"skill": "this agent takes no skills", "skills": "this agent takes no skills", "mcp-config": "this agent takes no MCP servers",
	"ae": "this agent runs no commands of its own", "agent-env": "this agent runs no commands of its own",
	"allow-agent-host":                     "this agent has no sandbox of its own, and networks of containers are the cube's own",
	"environment-build-timeout-multiplier": "making a cube's task has no limit of its own", "agent-setup-timeout-multiplier": "this agent has no set-up",
}

// checkCubeFlags refuses what a registered cube, or the agents that play it, would ignore.
// apart: one of them works in a sandbox of its own.
func checkCubeFlags(fs *pflag.FlagSet, apart bool) (err error) {
	fs.Visit(func(f *pflag.Flag) {
		why, refused := harborOnly[f.Name]
		if !refused && !apart {
			why, refused = sandboxedOnly[f.Name]
		}
		if refused && err == nil {
			err = usageErrorf("--%s is not supported for this cube: %s", f.Name, why)
		}
	})
	return err
}

// cubeRun is what a command line says of a run of a cube.
type cubeRun struct {
	*jobcli.Flags
	given  *pflag.FlagSet
	choice cubecli.Choice
}

// runCube runs the tasks of a registered cube as a job.
func runCube(ctx context.Context, env *Env, c *cubecli.Cube, f cubeRun) (err error) {
	interrupt.SurviveClosedPipes()
	if _, err := loadEnvFile(env, f.EnvFile); err != nil {
		return err
	}
	cfg, names, err := program(env).Configure(f.Flags)
	if err != nil {
		return err
	}
	apart := job.WorkApart(cfg.Agents, program(env).Agents)
	if err := checkCubeFlags(f.given, apart); err != nil {
		return err
	}
	env.hide(f.Secrets, env.source(f.Secrets).OfJob(cfg))
	if err := program(env).CheckCube(cfg, f.Flags, jobcli.CubeTraits{Name: c.Name, Solved: c.Agent != nil, Containers: c.NeedsContainer}); err != nil {
		return err
	}
	if err := cubeProgram(env).CheckUnmatched(c, f.choice); err != nil {
		return err
	}
	var opts backendOptions
	if c.NeedsContainer || apart {
		if cfg.Environment, opts, err = chooseEnvironment(ctx, env, cfg.Environment, f.Flags, names.Environment); err != nil {
			return err
		}
	}
	cache, err := cubeProgram(env).RootFor(c)
	if err != nil {
		return err
	}
	s := newSession(ctx, env, f.Flags, &opts)
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	if err := s.Claim(&cfg, names.Job); err != nil {
		return jobcli.ClaimError(err)
	}
	if cfg.Tasks, err = s.OpenCubes(ctx, &cfg, c.Opener(cache, f.choice)); err != nil {
		return err
	}
	prepared, err := s.Prepare(cfg)
	if err != nil {
		return jobcli.PrepareError(err)
	}
	if err := f.CheckOne(prepared); err != nil {
		return err
	}
	return program(env).Run(ctx, f.Flags, s, prepared)
}

// cubesOf lists the cubes whose tasks a stored job has.
func cubesOf(env *Env, cfg jobdir.Config) ([]job.CubeOpener, error) {
	names := job.CubesOf(cfg)
	if len(names) == 0 {
		return nil, nil
	}
	var list []job.CubeOpener
	for _, name := range names {
		c, err := cubeProgram(env).FindCube(name)
		if err != nil || c.Load != nil {
			return nil, withHint(usageErrorf("the job has tasks of cube %q, which is not one of proctor's", name), "resume it with the program that started it")
		}
		cache, err := cubeProgram(env).RootFor(c)
		if err != nil {
			return nil, err
		}
		list = append(list, c.Opener(cache, cubecli.Choice{}))
	}
	return list, nil
}
