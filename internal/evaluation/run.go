package evaluation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/trial"
)

// ErrInterrupted is the error of an evaluation that was ended before it was done.
var ErrInterrupted error = exception.New(exception.CancelledError, "interrupted; the same command resumes the evaluation")

// Configure makes the configuration of the job: its directory and its tasks.
func (e *Evaluation) Configure(cfg jobdir.Config) jobdir.Config {
	cfg.JobsDir, cfg.JobName, cfg.NAttempts, cfg.Tasks, cfg.Datasets = schema.CleanPath(e.Dir), JobName, e.Lock.Attempts, nil, nil
	cfg.Retry.MaxRetries = 0 // those of the lock are not carried out (section 11.2)
	for i := range e.Tasks {
		t := &e.Tasks[i]
		t.Dir = schema.CleanPath(t.Dir)
		cfg.Tasks = append(cfg.Tasks, jobdir.TaskConfig{Path: &t.Dir})
	}
	return cfg
}

// Runner runs the job of an evaluation.
type Runner struct {
	Session *job.Session
	// Backstop is how long a trial may take as a whole.
	Backstop time.Duration
	// Prepared is called before anything is written, with the job; resumed is nil for one
	// that is new. It may be nil.
	Prepared func(p *job.Prepared, resumed *job.Resumed) error
	// Run is the session's Run, unless it is set.
	Run func(context.Context, *job.Prepared) (*job.Summary, error)
	// Event is called with each event of the job, ended trials of it being recorded; the
	// record is nil for any other, and for a trial that was cancelled. It may be nil.
	Event func(e job.Event, ended *Ended)
}

// Run runs the trials that have no record, and records each when it has ended. After
// another end than that of the last of them, [ErrInterrupted] or the error says why. It
// closes the session.
func (e *Evaluation) Run(ctx context.Context, r Runner, cfg jobdir.Config) (err error) {
	if e.Missing() == 0 {
		return nil
	}
	removeEmpty := e.remover()
	defer func() {
		err = errors.Join(err, r.Session.Close(ctx))
		removeEmpty()
	}()
	if err := e.claim(r.Session, &cfg); err != nil {
		return err
	}
	p, resumed, err := e.prepare(r.Session, cfg)
	if err != nil {
		return err
	}
	if r.Prepared != nil {
		if err := r.Prepared(p, resumed); err != nil {
			return err
		}
	}
	if len(p.Remaining) > 0 {
		if err := r.Session.Open(ctx, p); err != nil {
			return err
		}
	}
	if err := e.Begin(); err != nil {
		return err
	}
	if err := e.CatchUp(p); err != nil || len(p.Remaining) == 0 {
		return err
	}
	return e.runJob(ctx, r, p)
}

// remover returns what removes the directories that will be made, as far as nothing was
// written to them.
func (e *Evaluation) remover() func() {
	made := !exists(e.Dir)
	return func() { // Remove leaves alone what is not empty
		_ = os.Remove(e.JobDir())
		if made {
			_ = os.Remove(e.Dir)
		}
	}
}

// claim makes the job's directory and keeps others from it.
func (e *Evaluation) claim(s *job.Session, cfg *jobdir.Config) error {
	if err := os.MkdirAll(e.JobDir(), 0o755); err != nil {
		return fmt.Errorf("making the job directory: %w", err)
	}
	return s.Claim(cfg, true)
}

// prepare prepares the job, or what remains of it.
func (e *Evaluation) prepare(s *job.Session, cfg jobdir.Config) (p *job.Prepared, resumed *job.Resumed, err error) {
	s.Options.AcceptHarmless = true // the lock says what must not change
	if e.begun() {
		if resumed, err = s.PrepareResume(e.JobDir(), job.ResumeOptions{Config: &cfg}); err == nil {
			p = resumed.Prepared
		}
	} else {
		p, err = s.Prepare(cfg)
	}
	if err != nil {
		return nil, nil, err
	}
	return p, resumed, e.Adopt(p)
}

// begun reports whether the job has been begun: it has a configuration, also a damaged
// one, or a journal that tells of one.
func (e *Evaluation) begun() bool {
	if exists(filepath.Join(e.JobDir(), scan.ConfigFile)) {
		return true
	}
	_, err := job.StoredConfig(e.JobDir())
	return err == nil
}

// runJob runs the trials that remain.
func (e *Evaluation) runJob(ctx context.Context, r Runner, p *job.Prepared) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.Session.Runner.Trials.Backstop = r.Backstop
	r.Session.Runner.Emit = func(ev job.Event) {
		ended, err := e.event(ev)
		if err != nil {
			cancel(err)
		}
		if r.Event != nil {
			r.Event(ev, ended)
		}
	}
	run := r.Run
	if run == nil {
		run = r.Session.Run
	}
	out, err := run(ctx, p)
	switch cause := context.Cause(ctx); {
	case cause != nil:
		return cause
	case err != nil:
		return err
	case out.Budget != nil:
		return fmt.Errorf("%w; the same command with a larger budget resumes the evaluation", out.Budget)
	case out.Interrupted:
		return ErrInterrupted
	}
	return nil
}

// event records a trial that ended.
func (e *Evaluation) event(ev job.Event) (*Ended, error) {
	if ev.Kind != job.EventTrial || ev.Trial.Kind != trial.EventEnd {
		return nil, nil
	}
	return e.Record(ev.Trial.Result)
}
