package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/cubecli/sandboxes"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/procid"
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

func runJob(ctx context.Context, env *Env, f *runFlags) error {
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
	options := prepareOptions(ctx, env)
	options.AcceptHarmless = f.acceptHarmless
	prepared, err := job.Prepare(cfg, options)
	if err != nil {
		return prepareError(err)
	}
	if err := confirmVariables(ctx, env, prepared, fromFile, f.yes); err != nil {
		return err
	}
	warnSealing(env, f.sealed, prepared)
	opts.Mask = append(hiddenOfConfig(env, cfg), hiddenTasks(prepared)...)
	if err := checkImageSpace(ctx, env, opts, prepared); err != nil {
		return err
	}
	backend, closeBackend, err := readyBackend(ctx, env, opts)
	if err != nil {
		return err
	}
	defer func() { _ = closeBackend() }()
	out, err := execute(ctx, env, f, execution{prepared: prepared, backend: backend, guard: guard, sealed: f.sealed})
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

// hiddenOfConfig lists what commands on the host's own files must not see of a
// job: its and other jobs' results, and the tasks that it names, with their
// solutions.
func hiddenOfConfig(env *Env, cfg jobdir.Config) []string {
	paths := []string{cfg.JobsDir}
	for _, t := range cfg.Tasks {
		paths = append(paths, hiddenOfTask(t)...)
	}
	for _, d := range cfg.Datasets {
		paths = append(paths, present(d.Path, d.DownloadDir)...)
	}
	return absolute(append(paths, taskCache(env)...))
}

// hiddenOfTask lists the directories that a task's configuration names.
func hiddenOfTask(t jobdir.TaskConfig) []string { return present(t.Path, t.DownloadDir) }

func present(paths ...*string) []string {
	var list []string
	for _, p := range paths {
		if p != nil {
			list = append(list, *p)
		}
	}
	return list
}

func absolute(paths []string) []string {
	var list []string
	for _, p := range paths {
		if abs, err := filepath.Abs(p); err == nil {
			list = append(list, abs)
		}
	}
	return list
}

// hiddenTasks lists the tasks of a job, for those that no path of its
// configuration leads to, such as the ones of a registry file.
func hiddenTasks(p *job.Prepared) []string {
	var dirs []string
	for _, t := range p.Trials {
		dir, err := p.TaskDir(t.Task)
		if err == nil && !slices.Contains(dirs, dir) { // without a directory its trial says so
			dirs = append(dirs, dir)
		}
	}
	return absolute(dirs)
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

// execution is one run of a prepared job.
type execution struct {
	prepared *job.Prepared
	backend  sandbox.Backend
	guard    *jobdir.Guard // of the job's directory, when it is held
	sealed   bool          // verifiers are sealed
	cubes    *job.Cubes    // whose tasks the job has; nil for none
	// amend changes tasks before they are run; nil leaves them.
	amend func(jobdir.TrialConfig, *harbor.Task)
	// watch is called with every event besides the view; nil for nobody.
	watch func(job.Event)
}

// execute runs a prepared job under a view, and listens to interrupts.
func execute(ctx context.Context, env *Env, f *runFlags, x execution) (*job.Summary, error) {
	p := x.prepared
	owner, err := procid.Self()
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
		Trials:  trial.Runner{Backend: x.backend, Lookup: env.Lookup, Now: env.Now, Owner: owner, Cube: x.cubes.Find, Agents: agents(), Amend: x.amend, SealedVerifier: x.sealed},
		Scripts: metricScripts(ctx, env),
		Emit: func(e job.Event) {
			v.event(e)
			if x.watch != nil {
				x.watch(e)
			}
		},
		Kill:  kill,
		Guard: x.guard,
		Host:  hostName(),
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
