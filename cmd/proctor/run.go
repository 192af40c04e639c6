package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/cubecli/sandboxes"
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
	flags := defineRunFlags(cmd)
	registerRunCompletions(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return asHarbor(runJob(cmd.Context(), env, flags), flags.harborExitCodes)
	}
	return cmd
}

func runJob(ctx context.Context, env *Env, f *runFlags) (err error) {
	fromFile, err := loadEnvFile(env, f.envFile)
	if err != nil {
		return err
	}
	cfg, names, err := configure(env, f)
	if err != nil {
		return err
	}
	if err := checkAgents(cfg, false); err != nil {
		return err
	}
	takeFromGit(env, &f.set, &cfg)
	if f.upload {
		return usageErrorf("--upload: proctor has no hosted hub to upload to")
	}
	var opts backendOptions
	if cfg.Environment, opts, err = chooseEnvironment(ctx, env, cfg.Environment, f.runtime, names.backend); err != nil {
		return err
	}
	s := newSession(ctx, env, f, &opts)
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	if err := s.Claim(&cfg, names.jobName); err != nil {
		return claimError(err)
	}
	prepared, err := s.Prepare(cfg)
	if err != nil {
		return prepareError(err)
	}
	if err := confirmVariables(ctx, env, prepared, fromFile, f.yes); err != nil {
		return err
	}
	warnSealing(env, f.sealed, prepared)
	if err := checkImageSpace(ctx, env, opts, prepared); err != nil {
		return err
	}
	out, err := execute(ctx, env, f, s, prepared)
	if err != nil {
		return err
	}
	return finishRun(env, f, prepared, out)
}

// chooseEnvironment settles where trials run: in the environment that was
// given, else in the first that works here. It returns the configuration that
// names it.
func chooseEnvironment(ctx context.Context, env *Env, cfg jobdir.EnvironmentConfig, runtime string, given bool) (jobdir.EnvironmentConfig, backendOptions, error) {
	name, ok := cfg.Backend()
	if !ok {
		return cfg, backendOptions{}, usageErrorf("environment.import_path names Python code, which proctor cannot run: %q", *cfg.ImportPath)
	}
	if !given {
		name = sandboxes.Auto
	}
	var asked backendOptions
	asked.Runtime = runtime
	name, err := sandboxes.Choose(ctx, name, asked.in(env))
	if err != nil {
		return cfg, backendOptions{}, err
	}
	cfg.SetBackend(name)
	opts, err := optionsOf(cfg, runtime)
	opts.name = name
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
	unavailable := errors.Is(err, sandbox.ErrUnavailable)
	if err = asUsage(ctx, err); unavailable {
		err = withHint(err, "'proctor doctor' lists what works on this machine")
	}
	return nil, nil, err
}

// asUsage makes an environment that cannot be used an error of the command
// line: nothing was run. A cancelled context takes precedence.
func asUsage(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case errors.Is(err, sandbox.ErrUnavailable):
		return usageErrorf("%w", err)
	}
	return err
}

// newSession is a session of a command line, in the environment that the options
// name once it is opened.
func newSession(ctx context.Context, env *Env, f *runFlags, opts *backendOptions) *job.Session {
	options := prepareOptions(ctx, env)
	options.AcceptHarmless = f.acceptHarmless
	return &job.Session{
		Runner: job.Runner{
			Trials:  trial.Runner{Lookup: env.Lookup, Now: env.Now, Agents: agents(), SealedVerifier: f.sealed},
			Scripts: metricScripts(ctx, env),
		},
		Options: options,
		Backend: func(ctx context.Context, hidden []string) (sandbox.Backend, func() error, error) {
			opts.Mask = append(opts.Mask, hidden...)
			return readyBackend(ctx, env, *opts)
		},
		Signals: env.Signals,
	}
}

// claimError makes a directory that cannot be had an error of usage.
func claimError(err error) error {
	if err = inUse(err); err == nil || exitCode(err) == exitUsage {
		return err
	}
	return usageErrorf("%w", err)
}

// execute runs a prepared job under a view; who watches it already still does.
func execute(ctx context.Context, env *Env, f *runFlags, s *job.Session, p *job.Prepared) (*job.Summary, error) {
	v := newView(env, f, p.Config)
	watch := s.Runner.Emit
	s.Runner.Emit = func(e job.Event) {
		v.event(e)
		if watch != nil {
			watch(e)
		}
	}
	s.Draining = func() { startDraining(env, v) }
	if p.Config.Debug {
		s.Runner.Debug = env.Stderr
	}
	out, err := s.Run(ctx, p)
	v.close()
	return out, inUse(err)
}

func startDraining(env *Env, v view) {
	if live, ok := v.(*liveView); ok {
		live.draining()
		return
	}
	_, _ = fmt.Fprintln(env.Stderr, "proctor: interrupted: running trials are being cancelled and recorded; interrupt again to stop at once")
}

func newView(env *Env, f *runFlags, cfg jobdir.Config) view {
	if f.json {
		return newJSONView(env.Stdout)
	}
	if cfg.Quiet {
		return noView{env.Stderr}
	}
	if _, ok := env.terminalWidth(env.Stderr); ok && !cfg.Debug {
		width := func() int { w, _ := env.terminalWidth(env.Stderr); return w }
		return newLiveView(env.Stderr, width, env.Now)
	}
	return &lineView{w: env.Stderr}
}
