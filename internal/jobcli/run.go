package jobcli

import (
	"context"
	"fmt"

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
	out, err := p.watch(ctx, f, s, prepared, policy)
	if err != nil {
		return err
	}
	return p.finish(f, prepared, policy, out)
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
	if err := s.Open(ctx, prepared); err != nil {
		return nil, err
	}
	if err := s.CheckTasks(prepared); err != nil {
		return nil, exitcode.WithHint(exitcode.Usagef("%w", err), "choose Docker with -e docker, or leave the task out with -x")
	}
	kept := &kept{}
	s.Runner.Trials.Kept = kept.add
	defer kept.print(p)
	v := p.newView(f, prepared.Config, policy)
	watch := s.Runner.Emit
	s.Runner.Emit = func(e job.Event) {
		v.event(e)
		if watch != nil {
			watch(e)
		}
	}
	s.Draining = func() { p.startDraining(v) }
	if prepared.Config.Debug {
		s.Runner.Debug = p.Stderr
	}
	out, err := s.Run(ctx, prepared)
	v.close()
	return out, InUse(err)
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
	if cfg.Quiet || f.Set.Quiet {
		return noView{p.Stderr, p.Name}
	}
	if _, ok := p.terminalWidth(p.Stderr); ok && !cfg.Debug {
		width := func() int { w, _ := p.terminalWidth(p.Stderr); return w }
		return newLiveView(p.Stderr, width, p.Now)
	}
	return &lineView{w: p.Stderr}
}
