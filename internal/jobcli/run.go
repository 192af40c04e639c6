package jobcli

import (
	"context"
	"fmt"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
)

// Run runs a prepared job in a session, shows it, and prints its result. The error
// carries the exit code.
func (p *Program) Run(ctx context.Context, f *Flags, s *job.Session, prepared *job.Prepared) error {
	out, err := p.Watch(ctx, f, s, prepared)
	if err != nil {
		return err
	}
	return p.finish(f, prepared, out)
}

// Watch runs a prepared job and shows it; who watches it already still does.
func (p *Program) Watch(ctx context.Context, f *Flags, s *job.Session, prepared *job.Prepared) (*job.Summary, error) {
	v := p.newView(f, prepared.Config)
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

func (p *Program) newView(f *Flags, cfg jobdir.Config) view {
	if f.JSON {
		return newJSONView(p.Stdout)
	}
	if cfg.Quiet {
		return noView{p.Stderr, p.Name}
	}
	if _, ok := p.terminalWidth(p.Stderr); ok && !cfg.Debug {
		width := func() int { w, _ := p.terminalWidth(p.Stderr); return w }
		return newLiveView(p.Stderr, width, p.Now)
	}
	return &lineView{w: p.Stderr}
}
