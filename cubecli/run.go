package cubecli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/internal/interrupt"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
)

// jobs is the program as one that runs jobs.
func (p *Program) jobs() *jobcli.Program {
	return &jobcli.Program{
		Name: p.Name, Resume: p.Name + " resume", Agents: p.agents(), Environments: p.Environments,
		Args: p.Args, Stdout: p.Stdout, Stderr: p.Stderr, Lookup: p.Lookup, Environ: p.Environ, Now: p.Now, Signals: p.Signals, Farewell: p.farewell,
	}
}

func (p *Program) runCommand() *cobra.Command {
	f := p.jobs().NewFlags()
	choice := &Choice{}
	cmd := &cobra.Command{
		Use:   "run CUBE",
		Short: "Run an agent on a cube's tasks and score them",
		Long: `run plays an episode of each task as a trial and writes a job directory, which
proctor's commands read. Agents:

` + p.describeAgents(),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := p.cube(args)
			if err != nil {
				return err
			}
			return p.jobs().WithLine(f, func() error { return p.run(cmd.Context(), c, f, *choice) })
		},
	}
	p.jobs().DefineCubeRun(cmd, f, p.Sandboxes != nil, func(fs *pflag.FlagSet) { choice.define(fs) })
	return cmd
}

func (p *Program) run(ctx context.Context, c *Cube, f *jobcli.Flags, choice Choice) (err error) {
	interrupt.SurviveClosedPipes()
	cfg, names, err := p.jobs().Configure(f)
	if err != nil {
		return err
	}
	if err := p.jobs().CheckCube(cfg, f, jobcli.CubeTraits{Name: c.Name, Solved: c.Agent != nil, Containers: c.NeedsContainer}); err != nil {
		return err
	}
	if err := p.CheckUnmatched(c, choice); err != nil {
		return err
	}
	opener, err := p.opener(c, choice)
	if err != nil {
		return err
	}
	environment := ""
	if names.Environment {
		environment, _ = cfg.Environment.Backend()
	}
	s := p.session(f, SandboxOptions{
		Environment: environment, Runtime: f.Runtime, Hardened: f.Hardened, AllowRemoteEngine: f.AllowRemoteEngine,
	})
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	if err := s.Claim(&cfg, names.Job); err != nil {
		return jobcli.ClaimError(err)
	}
	if cfg.Tasks, err = s.OpenCubes(ctx, &cfg, opener); err != nil {
		return err
	}
	prepared, err := s.Prepare(cfg)
	if err != nil {
		return jobcli.PrepareError(err)
	}
	return p.jobs().Run(ctx, f, s, prepared)
}

func (p *Program) resumeCommand() *cobra.Command {
	f := p.jobs().NewFlags()
	var o SandboxOptions
	var again jobcli.Again
	cmd := &cobra.Command{
		Use:   "resume JOBDIR",
		Short: "Resume a job that was interrupted or killed",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exitcode.Usagef("accepts one job directory, got %d", len(args))
			}
			if again.DryRun { // which runs nothing
				f.OutcomeLine = false
			}
			return p.jobs().WithLine(f, func() error { return p.resume(cmd.Context(), args[0], f, &again, o) })
		},
	}
	fs := cmd.Flags()
	if p.Sandboxes != nil {
		fs.StringVarP(&o.Environment, "env", "e", "", "where containers run (default: where the job ran)")
		fs.StringVar(&o.Runtime, "runtime", "", "OCI `runtime` of sandbox and host, as for run")
		jobcli.DefineHardening(fs, &o.Hardened, &o.AllowRemoteEngine)
	}
	again.Define(fs)
	jobcli.DefineAccept(fs, f)
	jobcli.DefineModel(fs, &f.Model)
	jobcli.DefineBudgets(fs, &f.Model)
	jobcli.DefineSecrets(fs, f)
	jobcli.DefineProgress(fs, f)
	jobcli.DefineResult(fs, f)
	return cmd
}

func (p *Program) resume(ctx context.Context, dir string, f *jobcli.Flags, again *jobcli.Again, o SandboxOptions) (err error) {
	interrupt.SurviveClosedPipes()
	if err := f.CheckPolicy(); err != nil {
		return err
	}
	cfg, err := job.StoredConfig(dir)
	if err != nil {
		return exitcode.Usagef("%w", err)
	}
	if err := jobcli.KeepSecrets(f, dir); err != nil {
		return err
	}
	cubes, err := p.cubesOf(cfg, dir)
	if err != nil {
		return err
	}
	if o.Environment == "" {
		o.Environment, _ = cfg.Environment.Backend()
	}
	s := p.session(f, o)
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	if err := s.Hold(dir); err != nil {
		return jobcli.ClaimError(err)
	}
	if _, err := s.OpenCubes(ctx, &cfg, cubes...); err != nil {
		return err
	}
	resumed, err := s.PrepareResume(dir, again.Options())
	if err != nil {
		return jobcli.ResumeError(err)
	}
	if p.jobs().PrintResume(again, resumed); again.DryRun {
		return nil
	}
	return p.jobs().Run(ctx, f, s, resumed.Prepared)
}

// cubesOf lists the cubes whose tasks the job in a directory has.
func (p *Program) cubesOf(cfg jobdir.Config, dir string) ([]job.CubeOpener, error) {
	var cubes []job.CubeOpener
	for _, name := range job.CubesOf(cfg) {
		c, err := p.FindCube(name)
		if err != nil {
			return nil, err
		}
		opener, err := p.opener(c, Choice{})
		if err != nil {
			return nil, err
		}
		cubes = append(cubes, opener)
	}
	if len(cubes) == 0 {
		return nil, exitcode.WithHint(exitcode.Usagef("%q is not a job of this program's cubes", dir), "'proctor job resume' resumes jobs of Harbor's tasks")
	}
	return cubes, nil
}

// session is one run of a job with the sandboxes of the program.
func (p *Program) session(f *jobcli.Flags, o SandboxOptions) *job.Session {
	s := p.jobs().Session(f)
	s.Backend = func(ctx context.Context, hidden []string) (sandbox.Backend, func() error, error) {
		if p.Sandboxes == nil {
			return nil, nil, errNoSandboxes
		}
		o.Mask = append(o.Mask, hidden...)
		return p.Sandboxes(ctx, o)
	}
	return s
}

// opener sets a cube up. Without a place for what cubes install, those that install
// something are refused.
func (p *Program) opener(c *Cube, choice Choice) (job.CubeOpener, error) {
	root, err := p.RootFor(c)
	if err != nil {
		return job.CubeOpener{}, err
	}
	return c.Opener(root, choice), nil
}

// describeAgents has a line for each agent that plays the tasks of cubes.
func (p *Program) describeAgents() string {
	var lines []string
	for _, e := range p.agents().Entries() {
		if e.PlaysCubes() {
			lines = append(lines, fmt.Sprintf("  %-10s %s", e.Name, e.Summary))
		}
	}
	return strings.Join(lines, "\n")
}
