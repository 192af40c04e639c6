package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/agent/mcp"
	"github.com/proctor-run/proctor/internal/interrupt"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/trial"
)

// resumeFlags are the flags of job resume; run holds those that run has too.
type resumeFlags struct {
	run   jobcli.Flags
	again jobcli.Again
	path  string
}

func newJobResume(env *Env) *cobra.Command {
	f := &resumeFlags{}
	cmd := &cobra.Command{
		Use:   "resume JOBDIR",
		Short: "Resume a job that was interrupted or killed",
		Long: `resume runs the trials of a job that have not finished, with the configuration
that its directory holds, and rewrites the result. Finished trials are kept.

A trial runs again when it never ended, when its result cannot be read, or when
it ended with one of the --filter-error-type exceptions (default
CancelledError). What it left is kept in attempts/ in its own directory.
Directories that belong to no trial of the job move to .set-aside/ beside the
jobs. Other files that are damaged are rebuilt from the journal and from each
other. Nothing is deleted.

A configuration or a task that was changed since is refused, with what was
changed and whether it changes results; --accept-harmless resumes when it does
not.

Results go to the directory that is named here, also when the configuration
names another. Paths of tasks are those of the configuration, so start it where
the job was started. The exit codes are those of run.`,
		Example: `  proctor job resume jobs/2026-06-09__10-00-00
  proctor job resume jobs/2026-06-09__10-00-00 -f AgentTimeoutError -f CancelledError
  proctor job resume jobs/2026-06-09__10-00-00 --retry-errored --dry-run`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return usageErrorf("accepts one job directory, got %d", len(args))
			case len(args) == 1 && cmd.Flags().Changed("job-path"):
				return usageErrorf("the job directory is given twice: %q, and with --job-path", args[0])
			case len(args) == 1:
				f.path = args[0]
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.again.DryRun { // which runs nothing
				f.run.OutcomeLine = false
			}
			return program(env).WithLine(&f.run, func() error {
				return asHarbor(resumeJob(cmd.Context(), env, f), f.run.HarborExitCodes)
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&f.path, "job-path", "p", "", "the job's `directory`, instead of JOBDIR")
	f.again.Define(fs)
	jobcli.DefineAccept(fs, &f.run)
	jobcli.DefineHub(fs, &f.run)
	fs.StringVar(&f.run.Runtime, "runtime", "", "OCI `runtime` of sandbox and host, as for run")
	fs.BoolVar(&f.run.Sealed, "sealed-verifier", false, "as for run; a job that was started with it keeps it")
	jobcli.DefineHardening(fs, &f.run.Hardened, &f.run.AllowRemoteEngine)
	jobcli.DefineEngineSocket(fs, &f.run)
	jobcli.DefineModel(fs, &f.run.Model)
	jobcli.DefineGateway(fs, &f.run.Model, trial.GatewayAuto)
	jobcli.DefineBudgets(fs, &f.run.Model)
	jobcli.DefineEnvFile(fs, &f.run)
	jobcli.DefineSecrets(fs, &f.run)
	jobcli.DefineProgress(fs, &f.run)
	jobcli.DefineResult(fs, &f.run)
	if err := cmd.MarkFlagDirname("job-path"); err != nil {
		panic(err) // the flag is defined a few lines above
	}
	return cmd
}

func resumeJob(ctx context.Context, env *Env, f *resumeFlags) (err error) {
	interrupt.SurviveClosedPipes()
	if err := errors.Join(f.run.CheckHub(), f.run.CheckPolicy()); err != nil {
		return err
	}
	if f.run.Hub.Upload {
		return usageErrorf("--upload: proctor has no hosted hub to upload to")
	}
	if err := checkJobPath(f.path); err != nil {
		return err
	}
	if _, err := loadEnvFile(env, f.run.EnvFile); err != nil {
		return err
	}
	if err := jobcli.KeepSecrets(&f.run, f.path); err != nil {
		return err
	}
	env.hide(f.run.Secrets, nil)
	var opts backendOptions
	s := newSession(ctx, env, &f.run, &opts)
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	if !f.again.DryRun {
		if err := s.Hold(f.path); err != nil {
			return jobcli.ClaimError(err)
		}
	}
	cfg, err := job.StoredConfig(f.path)
	if err != nil {
		return jobcli.ResumeError(err)
	}
	if err := checkResumable(env, cfg); err != nil {
		return err
	}
	f.run.Hardened = keepHardening(env, f.run.Hardened, f.path)
	s.Runner.Trials.Hardened = f.run.Hardened
	if _, opts, err = chooseEnvironment(ctx, env, cfg.Environment, &f.run, true); err != nil {
		return err
	}
	cubes, err := cubesOf(env, cfg)
	if err != nil {
		return err
	}
	if _, err := s.OpenCubes(ctx, &cfg, cubes...); err != nil {
		return err
	}
	return resumeWith(ctx, env, f, s)
}

// checkResumable refuses a job whose agents this program cannot run.
func checkResumable(env *Env, cfg jobdir.Config) error {
	if err := cfg.CheckNoPython(); err != nil {
		return usageErrorf("%w", err)
	}
	for _, a := range cfg.Agents {
		if a.Name == nil || *a.Name != mcp.EntryName {
			continue
		}
		if _, known := agents(env).Find(mcp.EntryName); !known {
			return usageErrorf("the job was played by a client of 'proctor mcp' and cannot be resumed: start it anew")
		}
	}
	return nil
}

// resumeWith resumes a job in a session.
func resumeWith(ctx context.Context, env *Env, f *resumeFlags, s *job.Session) error {
	resumed, err := s.PrepareResume(f.path, f.again.Options())
	if err != nil {
		return jobcli.ResumeError(err)
	}
	if program(env).PrintResume(&f.again, resumed); f.again.DryRun {
		return nil
	}
	// As with Harbor there is no question: it was answered when the job began.
	if err := confirmVariables(ctx, env, resumed.Prepared, nil, true); err != nil {
		return err
	}
	keepConcurrency(env, &f.run, resumed.Config.Dir())
	s.Runner.Trials.SealedVerifier = keepSealing(env, f.run.Sealed, resumed.Prepared)
	return program(env).Run(ctx, &f.run, s, resumed.Prepared)
}

func checkJobPath(path string) error {
	switch {
	case path == "":
		return withHint(usageErrorf("missing JOBDIR"), "proctor job resume JOBDIR; 'proctor job list' lists the jobs")
	case !isDirectory(path):
		return withHint(usageErrorf("Job directory does not exist: %s", path), "'proctor job list' lists the jobs")
	case !isFile(filepath.Join(path, scan.ConfigFile)) && !isFile(filepath.Join(path, journal.File)):
		return withHint(usageErrorf("Config file not found: %s", filepath.Join(path, scan.ConfigFile)),
			"a job that never wrote its configuration cannot be resumed; start it with 'proctor run'")
	}
	return nil
}
