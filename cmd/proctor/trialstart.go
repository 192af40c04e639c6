package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/dataset"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/flags"
	"github.com/proctor-run/proctor/internal/interrupt"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// trialFlags are the flags of trial start; run holds those that run has too.
type trialFlags struct {
	run       jobcli.Flags
	trialName *string
	set       job.TrialOverrides
}

func newTrialStart(env *Env) *cobra.Command {
	f := &trialFlags{run: *program(env).NewFlags()}
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Run one agent on one task once",
		Long: `start runs a single trial and writes its directory below --trials-dir.
No retries, no prompts.

Flags shared with Harbor behave as in Harbor.`,
		Example: `  proctor trial start -p examples/tasks/hello-world -a oracle -e host
  proctor trial start -c trial.yaml --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.set.Overrides = f.run.Set
			return asHarbor(startTrial(cmd.Context(), env, f), f.run.HarborExitCodes)
		},
	}
	defineTrialFlags(env, cmd, f)
	return cmd
}

func defineTrialFlags(env *Env, cmd *cobra.Command, f *trialFlags) {
	fs := cmd.Flags()
	fs.SortFlags = false
	o, t := &f.run.Set, &f.set
	p := program(env)
	flags.Topic(fs, "Task", func() {
		flags.Optional(fs, &o.Path, flags.String, "path", "p", "the task's `directory`")
		flags.Optional(fs, &o.GitURL, flags.String, "task-git-url", "", "`URL` of the git repository that --path is in")
		flags.Optional(fs, &o.GitCommit, flags.String, "task-git-commit", "", "`commit` of that repository")
	})
	flags.Topic(fs, "Agent", func() {
		p.DefineAgent(fs, &f.run)
		jobcli.DefineHarborAgent(fs, &f.run)
		jobcli.DefineModel(fs, &f.run.Model)
		jobcli.DefineGateway(fs, &f.run.Model, trial.GatewayAuto)
		jobcli.DefineTrialBudget(fs, &f.run.Model)
	})
	flags.Topic(fs, "Verifier", func() { jobcli.DefineVerifier(fs, &f.run) })
	flags.Topic(fs, "Environment", func() {
		p.DefineEnvironment(fs, &f.run)
		jobcli.DefineHarborEnvironment(fs, &f.run)
		p.DefineEnvironmentType(fs, &f.run)
	})
	flags.Topic(fs, "Trial", func() {
		fs.StringVarP(&f.run.Config, "config", "c", "", "trial configuration, a .json or .yaml `file`; other flags go on top of it")
		flags.Optional(fs, &f.trialName, flags.String, "trial-name", "", "`name` of the trial (default: the task's with random letters); ignored with --config")
		flags.Optional(fs, &t.TrialsDir, flags.String, "trials-dir", "", "`directory` that holds the trials (default trials)")
		flags.Optional(fs, &t.AgentTimeoutSec, flags.Positive, "agent-timeout", "", "`seconds` for the agent instead of the task's")
		flags.Optional(fs, &t.AgentSetupTimeoutSec, flags.Positive, "agent-setup-timeout", "", "`seconds` for the agent's set-up (default 360)")
		flags.Optional(fs, &t.VerifierTimeoutSec, flags.Positive, "verifier-timeout", "", "`seconds` for the verifier instead of the task's")
		jobcli.DefineMultipliers(fs, o)
		jobcli.DefineEnvFile(fs, &f.run)
		jobcli.DefineSecrets(fs, &f.run)
	})
	flags.Topic(fs, "Output", func() {
		fs.BoolVar(&f.run.JSON, "json", false, "print one JSON object about the trial, as 'trial show' does, nothing else")
		fs.BoolVar(&f.run.HarborExitCodes, "harbor-exit-codes", false, "exit as Harbor does: with 0 also when the trial errored, with 1 when it is refused")
	})
	jobcli.RefusePlugins(fs)
	flags.ByTopic(cmd)
	for _, flag := range []string{"path", "trials-dir"} {
		if err := cmd.MarkFlagDirname(flag); err != nil {
			panic(err) // the flag is defined a few lines above
		}
	}
}

func startTrial(ctx context.Context, env *Env, f *trialFlags) error {
	interrupt.SurviveClosedPipes()
	if _, err := loadEnvFile(env, f.run.EnvFile); err != nil {
		return err
	}
	if err := f.run.Model.CheckReplay(); err != nil {
		return err
	}
	cfg, named, err := configureTrial(env, f)
	if err != nil {
		return err
	}
	p, agents := program(env), []jobdir.AgentConfig{cfg.Agent}
	if err := p.CheckTemplates(agents, cfg.Verifier); err != nil {
		return err
	}
	if err := p.CheckModels(agents, &f.run.Model); err != nil {
		return err
	}
	if err := p.CheckBudgets(agents, &f.run.Model); err != nil {
		return err
	}
	env.hide(f.run.Secrets, env.source(f.run.Secrets).OfTrial(cfg, nil))
	var opts backendOptions
	if cfg.Environment, opts, err = chooseEnvironment(ctx, env, cfg.Environment, &f.run, named); err != nil {
		return err
	}
	task, err := findTask(ctx, env, cfg.Task, f.run.JSON)
	if err != nil {
		return err
	}
	if cfg.TrialName == "" {
		cfg.TrialName = job.TrialName(task.IDName(), rand.IntN)
	}
	dir := filepath.Join(cfg.TrialsDir, cfg.TrialName)
	if isFile(filepath.Join(dir, scan.ResultFile)) {
		return withHint(usageErrorf("%q holds a trial that has ended", dir), "name another with --trial-name, or none")
	}
	opts.Mask = append(job.Hidden(jobdir.Config{JobsDir: cfg.TrialsDir, Tasks: []jobdir.TaskConfig{cfg.Task}}, env.Getenv("HOME")), task.Dir)
	backend, closeBackend, err := readyBackend(ctx, env, opts)
	if err != nil {
		return err
	}
	defer func() { _ = closeBackend() }()
	if !f.run.JSON {
		printTrialStart(env.Stdout, cfg, task, opts.name)
	}
	result, err := runTrial(ctx, env, f, cfg, task, backend)
	if err != nil {
		return err
	}
	return f.finish(env, dir, result)
}

// configureTrial makes the trial's configuration: that of the file or the
// default, with the command line on top. named tells whether it names an
// environment.
func configureTrial(env *Env, f *trialFlags) (cfg jobdir.TrialConfig, named bool, err error) {
	if f.run.Config == "" && f.run.Set.Path == nil {
		return cfg, false, withHint(usageErrorf("%w", job.ErrNoTrialTask), "name a task directory with -p")
	}
	cfg = jobdir.NewTrialConfig(jobdir.TaskConfig{})
	if f.run.Config != "" {
		if cfg, named, err = readTrialConfig(env, f.run.Config); err != nil {
			return cfg, named, err
		}
	} else if f.trialName != nil {
		cfg.TrialName = *f.trialName
	}
	if strings.ContainsAny(cfg.TrialName, `/\`) || cfg.TrialName == ".." || cfg.TrialName == "." {
		return cfg, named, usageErrorf("trial name %q: want a single name, it becomes a directory", cfg.TrialName)
	}
	for _, path := range f.run.MCPConfigs {
		servers, err := job.ReadMCPServers(path)
		if err != nil {
			return cfg, named, usageErrorf("%w", err)
		}
		f.set.MCPServers = append(f.set.MCPServers, servers...)
	}
	if err := f.set.Apply(&cfg); err != nil {
		return cfg, named, usageErrorf("%w", err)
	}
	if err := errors.Join(cfg.CheckRunnable(), trial.CheckAgent(agents(env), cfg.Agent, false)); err != nil {
		return cfg, named, usageErrorf("%w", err)
	}
	return cfg, named || f.set.EnvironmentType != nil || f.set.EnvironmentImportPath != nil, nil
}

func readTrialConfig(env *Env, path string) (cfg jobdir.TrialConfig, named bool, err error) {
	data, format, names, err := program(env).ReadConfigFile("trial", path)
	if err != nil {
		return cfg, false, err
	}
	cfg, report, err := job.ParseTrialConfig(data, format)
	if err != nil {
		return cfg, false, usageErrorf("%s: %w", path, err)
	}
	for _, loc := range report.Unknown {
		_, _ = fmt.Fprintf(env.Stderr, "proctor: warning: %s: unknown key %s is ignored\n", path, clean(loc.String()))
	}
	return cfg, names.Environment, nil
}

// findTask finds the task on this machine, or brings it here.
func findTask(ctx context.Context, env *Env, t jobdir.TaskConfig, quiet bool) (found dataset.FetchedTask, err error) {
	if t.Kind() == jobdir.LocalTask {
		if !isDirectory(*t.Path) {
			return found, usageErrorf("there is no task directory %q", *t.Path)
		}
		return dataset.FetchedTask{Task: jobdir.Task{Config: t, Name: harbor.LocalName(*t.Path)}, Dir: *t.Path}, nil
	}
	var warnings []string
	err = whileFetching(ctx, env, quiet, func(ctx context.Context, o dataset.FetchOptions) (err error) {
		found, warnings, err = dataset.FetchTask(ctx, t, o)
		return err
	})
	if err != nil {
		return found, jobcli.PrepareError(err)
	}
	for _, w := range warnings {
		_, _ = fmt.Fprintf(env.Stderr, "proctor: warning: %s\n", clean(w))
	}
	return found, nil
}

func runTrial(ctx context.Context, env *Env, f *trialFlags, cfg jobdir.TrialConfig, task dataset.FetchedTask, backend sandbox.Backend) (*jobdir.TrialResult, error) {
	ctx, stop := interruptible(ctx, env)
	defer stop()
	runner := trial.Runner{
		Backend: backend, Lookup: env.Lookup, Now: env.Now, SealedVerifier: f.run.Sealed, Agents: agents(env),
		Environ: env.Environ, SecretNames: f.run.Secrets,
		Hardened: f.run.Hardened, AllowEngineSocket: f.run.AllowEngineSocket, Models: program(env).Models(&f.run.Model), Budget: f.run.Model.TrialBudget(),
		Gateway: f.run.Model.Gateway, Layers: program(env).Layers(),
		TaskDir: func(jobdir.TaskConfig) (string, error) { return task.Dir, nil },
		Kept: func(name, hint string) {
			_, _ = fmt.Fprintf(env.Stderr, "proctor: kept the sandbox of %s: %s\n", clean(name), clean(hint))
		},
	}
	if r := f.run.Model.Recordings(); r != nil {
		runner.Replay = r.Replay
	}
	if err := installFirst(ctx, env, &runner, cfg, f.run.JSON); err != nil {
		return nil, err
	}
	result, err := runner.Run(ctx, cfg, 1)
	if err == nil && ctx.Err() != nil {
		_, _ = fmt.Fprintf(env.Stderr, "proctor: interrupted; what was done is in %s\n", filepath.Join(cfg.TrialsDir, cfg.TrialName))
		err = errQuiet(exitInterrupted)
	}
	return result, err
}

func printTrialStart(w io.Writer, cfg jobdir.TrialConfig, task dataset.FetchedTask, backend string) {
	agent := ""
	switch {
	case cfg.Agent.Name != nil:
		agent = *cfg.Agent.Name
	case cfg.Agent.ImportPath != nil:
		agent = *cfg.Agent.ImportPath
	}
	_, _ = fmt.Fprintf(w, "Starting trial: %s\nTask: %s\nAgent: %s\nEnvironment: %s\nTrials directory: %s\n\n",
		clean(cfg.TrialName), clean(task.IDName()), clean(agent), backend, clean(cfg.TrialsDir))
}

// finish prints the result and turns it into an exit code.
func (f *trialFlags) finish(env *Env, dir string, r *jobdir.TrialResult) error {
	if f.run.JSON {
		s, err := readTrial(dir, 0)
		if err == nil {
			err = encodeJSON(env.Stdout, s)
		}
		if err != nil {
			return err
		}
	} else {
		printTrialEnd(env.Stdout, r)
		jobcli.PrintHowToLook(env.Stderr, "proctor", "proctor", "trial", dir)
	}
	if x, _ := r.Failure(); x != nil && !f.run.HarborExitCodes {
		return errQuiet(exitTrialErrors)
	}
	return nil
}

// printTrialEnd says how a trial ended, in Harbor's words.
func printTrialEnd(w io.Writer, r *jobdir.TrialResult) {
	_, _ = fmt.Fprintf(w, "Trial completed!\nTrial name: %s\nTask: %s\nStarted: %s\nFinished: %s\n",
		clean(r.TrialName), clean(r.TaskName), pythonTime(r.StartedAt), pythonTime(r.FinishedAt))
	switch {
	case r.ExceptionInfo != nil:
		_, _ = fmt.Fprintf(w, "Error: %s\nMessage: %s\n", clean(r.ExceptionInfo.Type), clean(r.ExceptionInfo.Message))
	case r.VerifierResult != nil:
		_, _ = fmt.Fprintf(w, "Rewards: %s\n", clean(rewardsRepr(r)))
	case len(r.StepResults) > 0:
		_, _ = fmt.Fprintln(w, "Trial completed with no verifier result")
	default:
		_, _ = fmt.Fprintln(w, "Trial completed with no errors and no verifier result")
	}
	if x, step := r.Failure(); step != "" {
		_, _ = fmt.Fprintf(w, "Error in step %s: %s\nMessage: %s\n", clean(step), clean(x.Type), clean(x.Message))
	}
}

func rewardsRepr(r *jobdir.TrialResult) string {
	if r.VerifierResult.Rewards == nil {
		return "None"
	}
	return value.Repr(r.VerifierResult.Rewards.Object())
}

// pythonTime is a time as Python's str() has it.
func pythonTime(t *jobdir.Time) string {
	if t == nil {
		return "None"
	}
	text := strings.Replace(t.String(), "T", " ", 1)
	if zulu, ok := strings.CutSuffix(text, "Z"); ok {
		text = zulu + "+00:00"
	}
	return text
}
