package jobcli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/score"
)

// Run runs a prepared job in a session, shows it, and prints its result. The error
// carries the exit code.
func (p *Program) Run(ctx context.Context, f *Flags, s *job.Session, prepared *job.Prepared) error {
	policy, err := f.policyOf(prepared)
	if err != nil {
		return err
	}
	began := false
	s.Runner.Emit = andThen(s.Runner.Emit, func(e job.Event) { began = began || e.Kind == job.EventJobStart })
	f.line.plan(tasksOf(prepared))
	out, err := p.watch(ctx, f, s, prepared, policy)
	if err != nil && began {
		return p.withResume(err, f, prepared.Config)
	}
	if err != nil {
		return err
	}
	return p.finish(f, prepared, policy, out)
}

// withResume adds to the error of a job that had begun how the job goes on.
func (p *Program) withResume(err error, f *Flags, cfg jobdir.Config) error {
	if moved, ok := errors.AsType[*job.MovedError](err); ok {
		if moved.Now == "" {
			return err
		}
		cfg.JobsDir, cfg.JobName = filepath.Split(moved.Now)
	}
	if f.One || p.Resume == "" {
		return err
	}
	return exitcode.WithHint(err, "to resume it: %s", p.resumeCommand(f, cfg))
}

// Watch runs a prepared job and shows it; who watches it already still does.
func (p *Program) Watch(ctx context.Context, f *Flags, s *job.Session, prepared *job.Prepared) (*job.Summary, error) {
	return p.watch(ctx, f, s, prepared, nil)
}

// watch is Watch for a job that is scored under a policy too; nil for none.
func (p *Program) watch(ctx context.Context, f *Flags, s *job.Session, prepared *job.Prepared, policy *score.Policy) (*job.Summary, error) {
	if len(prepared.Remaining) > 0 {
		if err := p.CheckBudgets(prepared.Config.Agents, &f.Model); err != nil {
			return nil, err
		}
	}
	if err := prepared.CheckLimits(); err != nil {
		return nil, exitcode.WithHint(exitcode.Usagef("%w", err), "give it more than 0 in the task.toml, or leave the task out with -x")
	}
	if err := s.Open(ctx, prepared); err != nil {
		return nil, err
	}
	if f.Auto {
		if err := s.ShareMachine(ctx); err != nil {
			return nil, exitcode.Usagef("--n-concurrent auto: %w", err)
		}
	}
	if f.Builds != nil {
		s.Runner.Builds = *f.Builds
	}
	if f.Verifiers != nil {
		s.Runner.Verifiers = *f.Verifiers
	}
	s.NoteProcessors(prepared)
	s.NoteStorage(prepared)
	if err := s.CheckTasks(prepared); err != nil {
		return nil, exitcode.WithHint(exitcode.Usagef("%w", err), "choose Docker with -e docker, or leave the task out with -x")
	}
	kept := &kept{}
	s.Runner.Trials.Kept = kept.add
	defer kept.print(p)
	v := p.newView(f, prepared.Config, policy)
	s.Runner.Emit = andThen(v.event, s.Runner.Emit)
	s.Draining = func() { p.startDraining(v) }
	if f.debug(prepared.Config) {
		s.Runner.Debug = p.Stderr
	}
	out, err := s.Run(ctx, prepared)
	v.close()
	return out, InUse(err)
}

// andThen calls both with each event, of which either may be nil.
func andThen(first, second func(job.Event)) func(job.Event) {
	if first == nil || second == nil {
		if first == nil {
			return second
		}
		return first
	}
	return func(e job.Event) {
		first(e)
		second(e)
	}
}

func (p *Program) startDraining(v view) {
	if live, ok := v.(*liveView); ok {
		live.draining()
		return
	}
	_, _ = fmt.Fprintf(p.Stderr, "%s: interrupted: running trials are being cancelled and recorded; interrupt again to stop at once\n", p.Name)
}

func (p *Program) newView(f *Flags, cfg jobdir.Config, policy *score.Policy) view {
	if f.JSON {
		return newJSONView(p.Stdout, policy)
	}
	if f.quiet(cfg) {
		return noView{p.Stderr, p.Name}
	}
	if _, ok := p.terminalWidth(p.Stderr); ok && !f.debug(cfg) && !f.Verbose {
		width := func() int { w, _ := p.terminalWidth(p.Stderr); return w }
		return newLiveView(p.Stderr, width, p.Now)
	}
	return &lineView{w: p.Stderr, verbose: f.Verbose}
}

// quiet and debug are what a command asks for, or the configuration of the job that it
// resumes.
func (f *Flags) quiet(cfg jobdir.Config) bool { return cfg.Quiet || f.Set.Quiet }
func (f *Flags) debug(cfg jobdir.Config) bool { return cfg.Debug || f.Set.Debug }
