package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/agent"
	shipped "github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/agent/installed"
	"github.com/proctor-run/proctor/cubecli/sandboxes"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/internal/interrupt"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/internal/ownfiles"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/trial"
)

func newRun(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run agents on tasks, verify and score them",
		Long: `run hands each task to each agent in a sandbox of its own, runs the task's
verifier and writes a job directory with the results.

Flags shared with Harbor behave as in Harbor. Interrupting once cancels the
running trials, records them and writes the results; interrupting twice stops at
once. Either way no sandbox is left.`,
		Example: `  proctor run -p examples/tasks -a oracle -e host
  proctor run -p my-task -a nop -k 3
  proctor run -p examples/tasks -a command --ak run='my-agent "$PROCTOR_INSTRUCTION"' -n 8
  proctor run -c job.yaml --json`,
		Args: noArguments,
	}
	f := program(env).NewFlags()
	program(env).DefineRun(cmd, f, jobcli.DefineTasks)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return program(env).WithLine(f, func() error {
			return asHarbor(runJob(cmd.Context(), env, f), f.HarborExitCodes)
		})
	}
	return cmd
}

func runJob(ctx context.Context, env *Env, f *jobcli.Flags) (err error) {
	interrupt.SurviveClosedPipes()
	fromFile, err := loadEnvFile(env, f.EnvFile)
	if err != nil {
		return err
	}
	cfg, names, err := program(env).Configure(f)
	if err != nil {
		return err
	}
	env.hide(f.Secrets, env.source(f.Secrets).OfJob(cfg))
	if err := program(env).CheckAgents(cfg, f, false); err != nil {
		return err
	}
	takeFromGit(env, &f.Set, &cfg)
	if f.Hub.Upload {
		return usageErrorf("--upload: proctor has no hosted hub to upload to")
	}
	var opts backendOptions
	if cfg.Environment, opts, err = chooseEnvironment(ctx, env, cfg.Environment, f, names.Environment); err != nil {
		return err
	}
	s := newSession(ctx, env, f, &opts)
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	if err := s.Claim(&cfg, names.Job); err != nil {
		return jobcli.ClaimError(err)
	}
	prepared, err := s.Prepare(cfg)
	if err != nil {
		return jobcli.PrepareError(err)
	}
	if err := f.CheckOne(prepared); err != nil {
		return err
	}
	if err := confirmVariables(ctx, env, prepared, fromFile, f.Yes); err != nil {
		return err
	}
	warnSealing(env, f.Sealed, prepared)
	warnHardening(env, f.Hardened, prepared)
	if err := checkImageSpace(ctx, env, opts, prepared); err != nil {
		return err
	}
	return program(env).Run(ctx, f, s, prepared)
}

// chooseEnvironment settles where trials run: in the environment that was
// given, else in the first that works here. It returns the configuration that
// names it.
func chooseEnvironment(ctx context.Context, env *Env, cfg jobdir.EnvironmentConfig, f *jobcli.Flags, given bool) (jobdir.EnvironmentConfig, backendOptions, error) {
	name, ok := cfg.Backend()
	if !ok {
		return cfg, backendOptions{}, usageErrorf("environment.import_path names Python code, which proctor cannot run: %q", *cfg.ImportPath)
	}
	if !f.AllowEngineSocket {
		if err := trial.CheckMounts(cfg.Mounts, env.Getenv); err != nil {
			return cfg, backendOptions{}, usageErrorf("%w", err)
		}
	}
	if !given {
		name = sandboxes.Auto
	}
	if err := checkSettings(f.Set.EnvironmentKwargs); err != nil {
		return cfg, backendOptions{}, err
	}
	warnSettings(env, cfg)
	asked := backendOptions{Options: sandboxes.Options{Runtime: f.Runtime, Hardened: f.Hardened, AllowRemoteEngine: f.AllowRemoteEngine}}
	asked.Chosen = func(c sandboxes.Choice) {
		if quiet := f.Set.Quiet || f.JSON; !quiet || slices.ContainsFunc(c.Passed, sandboxes.Passed.Meant) {
			_, _ = fmt.Fprintf(env.Stderr, "proctor: %s\n", clean(c.String()))
		}
	}
	name, err := sandboxes.Choose(ctx, name, asked.in(env))
	if err != nil {
		return cfg, backendOptions{}, err
	}
	cfg.SetBackend(name)
	opts, err := optionsOf(cfg, f.Runtime)
	opts.name, opts.Hardened, opts.AllowRemoteEngine = name, f.Hardened, f.AllowRemoteEngine
	opts.Keep = trial.KeepsSandbox(cfg)
	return cfg, opts, err
}

// readyBackend opens the backend, makes sure that it works and cleans up
// behind killed runs. An interrupt ends that.
func readyBackend(ctx context.Context, env *Env, opts backendOptions) (sandbox.Backend, func() error, error) {
	ctx, stop := interruptible(ctx, env)
	defer stop()
	backend, closeBackend, err := sandboxes.Open(ctx, opts.name, opts.in(env))
	if err == nil {
		return backend, closeBackend, nil
	}
	if ctx.Err() != nil {
		return nil, nil, errInterrupted
	}
	return nil, nil, toDoctor(err)
}

// toDoctor names the command that looks at every environment, besides the advice that
// the error of one has.
func toDoctor(err error) error {
	if !errors.Is(err, sandbox.ErrUnavailable) {
		return err
	}
	hint := "'proctor doctor' lists what works on this machine"
	if e, ok := errors.AsType[*exitcode.Error](err); ok && e.Hint != "" {
		hint = e.Hint + "; " + hint
	}
	return withHint(err, "%s", hint)
}

// newSession is a session of a command line, in the environment that the options
// name once it is opened.
func newSession(ctx context.Context, env *Env, f *jobcli.Flags, opts *backendOptions) *job.Session {
	s := program(env).Session(f)
	s.Options.Fetch = fetchTasks(ctx, env)
	s.Runner.Scripts = metricScripts(ctx, env)
	s.Backend = func(ctx context.Context, hidden []string) (sandbox.Backend, func() error, error) {
		opts.Mask = append(opts.Mask, hidden...)
		return readyBackend(ctx, env, *opts)
	}
	return s
}

// resumeCommand resumes the jobs of this program.
const resumeCommand = "proctor job resume"

// program is this program as one that runs jobs.
func program(env *Env) *jobcli.Program {
	return &jobcli.Program{
		Name: "proctor", Resume: resumeCommand, Show: "proctor", Agents: agents(env),
		Environments: backends().Names(), EnvironmentsUsage: backends().Usage(),
		Args: env.Args, Stdout: env.Stdout, Stderr: env.Stderr, Lookup: env.Lookup, Environ: env.Environ, Now: env.Now, Signals: env.Signals, Farewell: env.farewell,
	}
}

// agents are those that can be chosen in this program: those that come with it, and files
// of the user's.
func agents(env *Env) agent.Registry {
	return append(slices.Concat(shipped.All(), env.agents), installed.Files(ownfiles.Agents(env.Lookup)))
}
