package cubecli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// runFlags are the flags of run.
type runFlags struct {
	taskFlags
	agent, jobName, jobsDir string
	settings                []string
	attempts, concurrent    int
	limit                   int
}

func (p *Program) runCommand() *cobra.Command {
	f := &runFlags{}
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
			if f.limit < 0 {
				return exitcode.Usagef("--n-tasks must not be negative")
			}
			if cmd.Flags().Changed("n-tasks") {
				f.choice.Limit = &f.limit
			}
			return p.run(cmd.Context(), c, f)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&f.agent, "agent", "a", "oracle", "the `agent`, one of those above")
	fs.StringArrayVar(&f.settings, "ak", nil, "setting `key=value` of the agent; repeatable")
	p.defineTasks(cmd, &f.taskFlags, true)
	fs.StringArrayVarP(&f.choice.Exclude, "exclude-task-name", "x", nil, "leave out the tasks that match this `glob`; repeatable")
	fs.IntVarP(&f.limit, "n-tasks", "l", 0, "run at most this `number` of tasks")
	fs.IntVarP(&f.attempts, "n-attempts", "k", 1, "`number` of attempts at each task")
	fs.IntVarP(&f.concurrent, "n-concurrent", "n", 4, "`number` of trials that run at once")
	fs.StringVarP(&f.jobsDir, "jobs-dir", "o", "jobs", "`directory` that holds the jobs")
	fs.StringVar(&f.jobName, "job-name", "", "`name` of the job (default: the local time)")
	return cmd
}

func (p *Program) run(ctx context.Context, c *Cube, f *runFlags) (err error) {
	cfg := jobdir.NewConfig(p.Now().Local())
	set := job.Overrides{KnownAgents: p.agents(), Agent: &f.agent, AgentKwargs: f.settings, NAttempts: &f.attempts, NConcurrent: &f.concurrent, JobsDir: &f.jobsDir}
	if f.jobName != "" {
		set.JobName = &f.jobName
	}
	if err := errors.Join(set.Apply(&cfg, func(string) bool { return false }), cfg.CheckRunnable(), job.CheckAgents(cfg.Agents, p.agents(), true)); err != nil {
		return exitcode.Usagef("%w", err)
	}
	s := p.session(f.sandbox)
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	opener, err := p.opener(c, f.choice)
	if err != nil {
		return err
	}
	if err := s.Claim(&cfg, f.jobName != ""); err != nil {
		return exitcode.Usagef("%w", err)
	}
	if cfg.Tasks, err = s.OpenCubes(ctx, &cfg, opener); err != nil {
		return err
	}
	prepared, err := s.Prepare(cfg)
	if err != nil {
		return exitcode.Usagef("%w", err)
	}
	return p.execute(ctx, s, prepared)
}

func (p *Program) resumeCommand() *cobra.Command {
	var f taskFlags
	cmd := &cobra.Command{
		Use:   "resume JOBDIR",
		Short: "Resume a job that was interrupted or killed",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exitcode.Usagef("accepts one job directory, got %d", len(args))
			}
			return p.resume(cmd.Context(), args[0], f.sandbox)
		},
	}
	if p.Sandboxes != nil {
		cmd.Flags().StringVarP(&f.sandbox.Environment, "env", "e", "", "where containers run (default: where the job ran)")
	}
	return cmd
}

func (p *Program) resume(ctx context.Context, dir string, o SandboxOptions) (err error) {
	cfg, err := job.StoredConfig(dir)
	if err != nil {
		return exitcode.Usagef("%w", err)
	}
	var cubes []job.CubeOpener
	for _, name := range job.CubesOf(cfg, isDirectory) {
		c, err := p.FindCube(name)
		if err != nil {
			return err
		}
		opener, err := p.opener(c, Choice{})
		if err != nil {
			return err
		}
		cubes = append(cubes, opener)
	}
	if len(cubes) == 0 {
		return exitcode.WithHint(exitcode.Usagef("%q is not a job of this program's cubes", dir), "'proctor job resume' resumes jobs of Harbor's tasks")
	}
	if o.Environment == "" {
		o.Environment, _ = cfg.Environment.Backend()
	}
	s := p.session(o)
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	if err := s.Hold(dir); err != nil {
		return exitcode.Usagef("%w", err)
	}
	if _, err := s.OpenCubes(ctx, &cfg, cubes...); err != nil {
		return err
	}
	resumed, err := s.PrepareResume(dir, job.ResumeOptions{})
	if err != nil {
		return exitcode.Usagef("%w", err)
	}
	_, _ = fmt.Fprintf(p.Stderr, "%s: %d of %d trials are kept, %d to run\n", p.Name, len(resumed.Existing), len(resumed.Trials), len(resumed.Remaining))
	return p.execute(ctx, s, resumed.Prepared)
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// session is one run of a job with what the program has.
func (p *Program) session(o SandboxOptions) *job.Session {
	home, _ := p.Lookup("HOME")
	return &job.Session{
		Runner:  job.Runner{Trials: trial.Runner{Lookup: p.Lookup, Now: p.Now, Agents: p.agents()}},
		Options: job.PrepareOptions{Now: p.Now().Local(), Host: p.Lookup, Home: home, Invocation: p.Args},
		Backend: func(ctx context.Context, hidden []string) (sandbox.Backend, func() error, error) {
			if p.Sandboxes == nil {
				return nil, nil, errNoSandboxes
			}
			o.Mask = append(o.Mask, hidden...)
			return p.Sandboxes(ctx, o)
		},
		Signals: p.Signals,
	}
}

func (p *Program) opener(c *Cube, choice Choice) (job.CubeOpener, error) {
	root, err := p.CacheRoot()
	if err != nil {
		return job.CubeOpener{}, err
	}
	return c.Opener(root, choice), nil
}

// describeAgents has a line for each agent that plays the tasks of cubes.
func (p *Program) describeAgents() string {
	var lines []string
	for _, e := range p.agents().Entries() {
		if e.Stepped != nil {
			lines = append(lines, fmt.Sprintf("  %-10s %s", e.Name, e.Summary))
		}
	}
	return strings.Join(lines, "\n")
}

// execute runs a prepared job: one line on standard error for each trial, and
// the metrics on standard output.
func (p *Program) execute(ctx context.Context, s *job.Session, prepared *job.Prepared) error {
	s.Runner.Emit = p.trialLine
	out, err := s.Run(ctx, prepared)
	if err != nil {
		return err
	}
	dir := prepared.Config.Dir()
	if out.Interrupted {
		_, _ = fmt.Fprintf(p.Stderr, "%s: interrupted; '%s resume %s' resumes the job\n", p.Name, p.Name, dir)
		return exitcode.Quiet(exitcode.Interrupted)
	}
	for _, m := range out.Progress.Metrics {
		_, _ = fmt.Fprintf(p.Stdout, "%s: %s %s over %s, %d with a reward\n", console.Clean(m.Group), console.Clean(m.Name), m.Value, console.Count(m.N, "trial"), m.NScored)
	}
	_, _ = fmt.Fprintf(p.Stdout, "Results written to %s\n", filepath.Join(dir, scan.ResultFile))
	if out.Result.Stats.NErroredTrials > 0 {
		return exitcode.Quiet(exitcode.TrialErrors)
	}
	return nil
}

// trialLine prints how a trial ended.
func (p *Program) trialLine(e job.Event) {
	switch {
	case e.Kind == job.EventWarning:
		_, _ = fmt.Fprintf(p.Stderr, "%s: warning: %s\n", p.Name, console.Clean(e.Message))
	case e.Kind == job.EventTrial && e.Trial.Result != nil:
		r := e.Trial.Result
		text := "no reward"
		if r.VerifierResult != nil && r.VerifierResult.Rewards != nil {
			text = "rewards " + value.Repr(r.VerifierResult.Rewards.Object())
		}
		if r.ExceptionInfo != nil {
			text = fmt.Sprintf("%s: %s, %s", r.ExceptionInfo.Type, r.ExceptionInfo.Message, text)
		}
		_, _ = fmt.Fprintf(p.Stderr, "%s: %s\n", console.Clean(r.TrialName), console.Clean(text))
	}
}
