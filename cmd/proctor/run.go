package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

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

Flags that Harbor has too mean what they mean there. Interrupting once cancels
the running trials, records them and writes the results; interrupting twice
stops at once. Either way no sandbox is left.`,
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

func runJob(ctx context.Context, env *Env, f *runFlags) error {
	fromFile, err := loadEnvFile(env, f.envFile)
	if err != nil {
		return err
	}
	cfg, names, err := configure(env, f)
	if err != nil {
		return err
	}
	takeFromGit(env, &f.set, &cfg)
	if f.upload {
		return usageErrorf("--upload: proctor has no hosted hub to upload to")
	}
	name, opts, err := chooseEnvironment(ctx, env, &cfg, f.runtime, names.backend)
	if err != nil {
		return err
	}
	release, err := claimName(&cfg, names)
	if err != nil {
		return err
	}
	defer release()
	if f.guard, err = guardJob(env, cfg.Dir()); err != nil {
		return err
	}
	defer func() { _ = f.guard.Release() }()
	options := prepareOptions(ctx, env)
	options.AcceptHarmless = f.acceptHarmless
	prepared, err := job.Prepare(cfg, options)
	if err != nil {
		return prepareError(err)
	}
	if err := confirmVariables(ctx, env, prepared, fromFile, f.yes); err != nil {
		return err
	}
	warnSealing(env, f, prepared)
	opts.hideTasks(prepared)
	backend, closeBackend, err := readyBackend(ctx, env, name, opts)
	if err != nil {
		return err
	}
	defer func() { _ = closeBackend() }()
	out, err := execute(ctx, env, f, prepared, backend)
	if err != nil {
		return err
	}
	return finishRun(env, f, prepared, out)
}

// chooseEnvironment settles where the trials run, and writes it to the
// configuration.
func chooseEnvironment(ctx context.Context, env *Env, cfg *jobdir.Config, runtime string, given bool) (string, backendOptions, error) {
	name, ok := cfg.Environment.Backend()
	if !ok {
		return "", backendOptions{}, usageErrorf("environment.import_path names Python code, which proctor cannot run: %q", *cfg.Environment.ImportPath)
	}
	if !given || name == "auto" {
		name = sandbox.BackendSandbox // the one that runtimes are for
		if runtime == "" {
			name = chooseBackend(ctx, env, "auto")
		}
		cfg.Environment.SetBackend(name)
	}
	if err := checkRuntime(runtime, name); err != nil {
		return "", backendOptions{}, err
	}
	opts, err := optionsOf(cfg.Environment, runtime)
	opts.mask = append(hiddenFromHost(cfg), fetchedDirs(env, cfg)...)
	return name, opts, err
}

// readyBackend opens the backend, makes sure that it works and cleans up
// behind killed runs. An interrupt ends that.
func readyBackend(ctx context.Context, env *Env, name string, opts backendOptions) (sandbox.Backend, func() error, error) {
	ctx, stop := interruptible(ctx, env)
	defer stop()
	backend, closeBackend, err := openBackend(ctx, env, name, opts)
	if err != nil {
		return nil, nil, asUsage(ctx, err)
	}
	if err := checkOnce(ctx, env, backend, opts.runtime); err != nil {
		return nil, nil, errors.Join(withHint(asUsage(ctx, err), "'proctor doctor' lists what works on this machine"), closeBackend())
	}
	removed, err := collect(ctx, backend)
	if err != nil {
		fmt.Fprintf(env.Stderr, "proctor: warning: %v\n", err)
	}
	for _, line := range removed {
		fmt.Fprintf(env.Stderr, "proctor: left behind by a killed run: %s\n", line)
	}
	if backend.Capabilities().OwnRoot {
		fmt.Fprintln(env.Stderr, "proctor: -e host shows this machine's own files to the agent (home directories and credentials masked): for demos and trusted agents only")
	}
	return backend, closeBackend, nil
}

// hiddenFromHost lists what commands on the host's own files must not see: the
// results of this and other jobs, and the tasks with their solutions.
func hiddenFromHost(cfg *jobdir.Config) []string {
	paths := []string{cfg.JobsDir}
	for _, t := range cfg.Tasks {
		if t.Path != nil {
			paths = append(paths, *t.Path)
		}
	}
	for _, d := range cfg.Datasets {
		if d.Path != nil {
			paths = append(paths, *d.Path)
		}
	}
	var hidden []string
	for _, p := range paths {
		if abs, err := filepath.Abs(p); err == nil {
			hidden = append(hidden, abs)
		}
	}
	return hidden
}

// hideTasks hides the tasks of a job too that no path of its configuration
// leads to, such as those of a registry file.
func (o *backendOptions) hideTasks(p *job.Prepared) {
	for _, t := range p.Trials {
		dir, err := p.TaskDir(t.Task)
		if err != nil {
			continue // its trial will say so
		}
		abs, err := filepath.Abs(dir)
		below := func(hidden string) bool {
			return abs == hidden || strings.HasPrefix(abs, hidden+string(filepath.Separator))
		}
		if err == nil && !slices.ContainsFunc(o.mask, below) {
			o.mask = append(o.mask, abs)
		}
	}
}

// asUsage makes an environment that cannot be used an error of the command
// line: nothing was run. It may also be that nobody wants to know any more.
func asUsage(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case errors.Is(err, sandbox.ErrUnavailable):
		return usageErrorf("%w", err)
	}
	return err
}

// execute runs the prepared job under a view, and listens to interrupts.
func execute(ctx context.Context, env *Env, f *runFlags, p *job.Prepared, backend sandbox.Backend) (*job.Outcome, error) {
	owner, err := sandbox.Self()
	if err != nil {
		return nil, err
	}
	v := newView(env, f, p.Config)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	kill := make(chan struct{})
	stopListening := listen(env.Signals, func() { startDraining(env, v); cancel() }, func() { close(kill) })
	defer stopListening()
	runner := job.Runner{
		Trials:  trial.Runner{Backend: backend, Lookup: env.Lookup, Now: env.Now, Owner: owner, Cube: f.cube, Amend: f.amend, SealedVerifier: f.sealed},
		Scripts: metricScripts(ctx, env),
		Emit:    f.tellAlso(v.event),
		Kill:    kill,
		Guard:   f.guard,
		Host:    hostName(),
	}
	if p.Config.Debug {
		runner.Debug = env.Stderr
	}
	out, err := runner.Run(ctx, p)
	v.close()
	return out, inUse(err)
}

// listen calls first at the first signal and second at the second one.
func listen(signals <-chan os.Signal, first, second func()) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, act := range []func(){first, second} {
			select {
			case <-signals:
				act()
			case <-done:
				return
			}
		}
		<-done
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

func startDraining(env *Env, v view) {
	if live, ok := v.(*liveView); ok {
		live.draining()
		return
	}
	fmt.Fprintln(env.Stderr, "proctor: interrupted: running trials are being cancelled and recorded; interrupt again to stop at once")
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
