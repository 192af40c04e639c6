package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/internal/redact"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/trial"
)

// Runner runs the trials of a prepared job.
type Runner struct {
	// Trials runs one trial. Only its Backend and Agents are needed; what it has in
	// common with the job is set by Run: TaskDir, Emit, JobLog and Secrets.
	Trials trial.Runner
	// Budget bounds what the models of all trials may be used for, in this run and those
	// before it, as [trial.Runner.Budget] bounds one trial. When it is used up no trial is
	// begun any more, and the job ends like one that was interrupted: it can be resumed
	// with a larger one.
	Budget llm.Budget
	// Room, when set, lets a trial begin only when what its task asks for is free. The
	// number of trials that run at once bounds them as well.
	Room *Room
	// Builds and Verifiers bound how many trials build their environments, and verify, at
	// a time, see [trial.Runner]; 0 for as many as run.
	Builds, Verifiers int
	// Recordings, when set, are what agents get in place of the answers of models. A job
	// that was started with some goes on with them when it is resumed without; one whose
	// trials called models does not go on with recordings, see [ErrNotReplayed].
	Recordings *Recordings
	// Scripts computes uv-script metrics; nil means that they cannot be.
	Scripts score.ScriptMetric
	// Sleep waits between attempts; nil means time.
	Sleep func(context.Context, time.Duration) error
	// Emit is called with each event, one at a time; it may be nil.
	Emit func(Event)
	// Debug receives what job.log receives; may be nil.
	Debug io.Writer
	// Kill, when it is closed, destroys every running sandbox at once and gives up
	// what does not return. It is for a person who will not wait for a cancelled run
	// to end in order.
	Kill <-chan struct{}
	// Guard of the job's directory, when the caller holds it already.
	Guard *jobdir.Guard
	// Host is the name of this machine, for the journal and for others who
	// want to write to the directory; empty means that of the system.
	Host string
}

// Summary is how a run of a job ended.
type Summary struct {
	// Result is what the job's result.json holds.
	Result *jobdir.Result
	// Progress counts the trials.
	Progress Progress
	// Records are the trials that ended, in their final order.
	Records []jobdir.Record
	// Statistics of the Records.
	Statistics score.Statistics
	// Models is what the models of the Records were used for.
	Models score.ModelUse
	// Interrupted: the context ended before all trials had run, or the budget did.
	Interrupted bool
	// Budget is how the budget interrupted the job; nil where it did not.
	Budget *llm.BudgetError
}

// Run runs the remaining trials and writes the job's directory (Harbor job
// format, sections 2.4, 4 and 5). Trials that fail are results; the error says
// that proctor itself could not go on, and what has been written then stays.
//
// When ctx ends, running trials are cancelled and recorded, and no other is
// started. In every case no sandbox is left.
func (r *Runner) Run(ctx context.Context, p *Prepared) (*Summary, error) {
	r, err := r.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("starting job %q: %w", p.Config.JobName, err)
	}
	if err := r.install(ctx, p); err != nil {
		return nil, fmt.Errorf("starting job %q: %w", p.Config.JobName, err)
	}
	s, err := r.start(p)
	if err != nil {
		return nil, fmt.Errorf("starting job %q: %w", p.Config.JobName, err)
	}
	out, err := r.run(ctx, s)
	return out, errors.Join(err, s.close())
}

// withDefaults returns a copy in which what was left out is set.
func (r *Runner) withDefaults() (*Runner, error) {
	trials, err := r.Trials.WithDefaults()
	if err != nil {
		return nil, err
	}
	own := *r
	own.Trials = *trials
	if own.Host == "" {
		own.Host, _ = os.Hostname() // a machine may have no name
	}
	return &own, nil
}

// started is a job whose directory is open and guarded.
type started struct {
	p       *Prepared
	log     *os.File
	secrets *redact.Set
	journal *journal.Writer
	guard   *jobdir.Guard // nil when it is the caller's
	place   *place
}

func (s *started) close() error {
	return errors.Join(s.journal.Close(), s.log.Close(), s.guard.Release(), s.place.close())
}

// ErrOvertaken is the error of a job that somebody else ran since it was
// prepared.
var ErrOvertaken = errors.New("another proctor has run this job meanwhile; resume it again")

// start opens the job's directory.
func (r *Runner) start(p *Prepared) (s *started, err error) {
	dir := p.Config.Dir()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	s = &started{p: p, secrets: r.secrets(p)}
	if r.Guard == nil {
		if s.guard, err = jobdir.Acquire(dir, r.holder()); err != nil {
			return nil, err
		}
	}
	log, resumed, err := openJobLog(p)
	if err != nil {
		return nil, errors.Join(err, s.guard.Release())
	}
	s.log = log
	if s.place, err = openPlace(dir); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if resumed != p.Begun {
		return nil, errors.Join(ErrOvertaken, s.close())
	}
	if !resumed {
		// Between preparing and running lies what the environment takes.
		now := *p
		now.StartedAt = jobdir.Local(r.Trials.Now())
		s.p = &now
	}
	if err := r.keepReplaying(s.p); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if err := r.openJournal(s, resumed); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// openJournal begins a run in the journal, with what the run keeps, moves away and mends
// of the runs before.
func (r *Runner) openJournal(s *started, resumed bool) (err error) {
	if s.journal, err = journal.Open(s.p.Config.Dir(), r.Trials.Now); err != nil {
		return err
	}
	if err := s.journal.AppendSync(r.startEntry(s, resumed || s.journal.Begun())); err != nil {
		return err
	}
	if len(s.p.Existing) > 0 {
		if err := s.noteKept(); err != nil {
			return err
		}
	}
	if err := s.p.setOrphansAside(s.journal, s.secrets); err != nil {
		return err
	}
	return s.p.repairAll()
}

// run runs a job that has been started.
func (r *Runner) run(ctx context.Context, s *started) (*Summary, error) {
	p := s.p
	m := newMonitor(r, s)
	var warnings []string
	m.meter, warnings = r.newMeter(p)
	if err := m.writeInputs(p, r.Trials.Lookup); err != nil {
		return nil, fmt.Errorf("starting job %q: %w", p.Config.JobName, err)
	}
	tracked := newTracker(r.Trials.Backend, m.sandboxEntry)
	runner := r.Trials
	if r.Recordings != nil {
		runner.Replay = r.Recordings.Replay
	}
	runner.TaskDir, runner.Secrets = p.TaskDir, r.restoring(p)
	runner.Setups = p.setups(runner.Lookup)
	runner.Builds, runner.Verifiers = trial.NewLane(r.Builds), trial.NewLane(r.Verifiers)
	runner.Backend, runner.Emit, runner.JobLog, runner.Abandon, runner.Meter = tracked, m.trialEvent, s.log, r.Kill, m.meter
	if r.Debug != nil {
		runner.JobLog = io.MultiWriter(s.log, r.Debug)
	}

	stopWriting := m.writeWhileRunning()
	m.emit(Event{Kind: EventJobStart})
	for _, w := range slices.Concat(p.Warnings, warnings) {
		m.emit(Event{Kind: EventWarning, Message: w})
	}
	err := r.runAll(ctx, p, &runner, m, tracked)
	if moved := s.place.check(); moved != nil {
		_ = stopWriting() // not to where it does not belong
		err = moved       // whatever went wrong first, this is why
	} else {
		err = errors.Join(err, stopWriting())
	}
	if err != nil {
		return nil, errors.Join(err, s.journal.AppendSync(journal.Entry{Kind: journal.JobFailed, Reason: s.secrets.String(err.Error())}))
	}
	return m.finish(ctx)
}

// setups are those of the trials that remain.
func (p *Prepared) setups(lookup harbor.Lookup) *trial.Setups {
	cfgs := make([]jobdir.TrialConfig, 0, len(p.Remaining))
	for _, i := range p.Remaining {
		cfgs = append(cfgs, p.Trials[i])
	}
	return trial.NewSetups(cfgs, lookup)
}

// restoring puts values in place of what the job's configurations hold redacted; it is what
// the caller set where they hold nothing redacted.
func (r *Runner) restoring(p *Prepared) func(jobdir.TrialConfig) jobdir.TrialConfig {
	if !p.Redacted && p.literals == nil {
		return r.Trials.Secrets
	}
	lookup := r.lookupIn(p)
	return func(c jobdir.TrialConfig) jobdir.TrialConfig { return restoreSecrets(c, lookup) }
}

// logName is the job's log in its directory.
const logName = "job.log"

// openJobLog opens the job's log; resumed reports whether the job has run
// before, and then the log is appended to.
func openJobLog(p *Prepared) (log *os.File, resumed bool, err error) {
	dir := p.Config.Dir()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, false, err
	}
	if _, err := os.Lstat(filepath.Join(dir, scan.ResultFile)); err == nil {
		log, err = bounded.AppendIn(dir, logName, 0o644)
		return log, true, err
	}
	log, err = bounded.Truncate(dir, logName)
	return log, false, err
}

// runAll runs the remaining trials, so many at a time. The first failure of
// proctor itself cancels the others.
func (r *Runner) runAll(ctx context.Context, p *Prepared, runner *trial.Runner, m *monitor, tracked *tracker) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m.fail = cancel
	stopKiller := tracked.killOn(r.Kill) //nolint:contextcheck // it kills also what an interrupt left
	defer stopKiller()
	var watching sync.WaitGroup
	watched, unwatch := context.WithCancel(ctx)
	watching.Go(func() { m.place.watch(watched, cancel) })
	defer watching.Wait()
	defer unwatch()

	queue := make(chan int)
	room := r.admission(p, m)
	var workers sync.WaitGroup
	for range min(p.Config.NConcurrentTrials, len(p.Remaining)) {
		workers.Go(func() {
			for i := range queue {
				if err := r.runTrial(ctx, runner, p, i, m, room); err != nil {
					cancel(err)
				}
				m.warnOf(runner.Setups.Leave(ctx, p.Trials[i]))
			}
		})
	}
	for _, i := range p.Remaining {
		select {
		case queue <- i:
			continue
		case <-ctx.Done():
		case <-m.meter.UsedUp():
			m.emit(Event{Kind: EventWarning, Message: m.meter.Exceeded().Error() + "; no more trials are begun"})
		}
		break
	}
	close(queue)
	workers.Wait()
	m.warnOf(runner.Setups.Close(ctx))
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// runTrial runs one trial with its retries.
func (r *Runner) runTrial(ctx context.Context, runner *trial.Runner, p *Prepared, i int, m *monitor, room *admission) error {
	ended := func() bool { return ctx.Err() != nil || m.meter.Exceeded() != nil }
	if ended() {
		return nil
	}
	cfg := p.Trials[i]
	first, err := p.setEarlierAside(i, m.journal)
	if err != nil {
		return err
	}
	for retries := 0; ctx.Err() == nil; retries++ {
		leave, err := room.enter(ctx, i, first+retries)
		if err != nil || ended() {
			return nil //nolint:nilerr // the job ends, and the trial was not begun
		}
		res, err := r.attempt(ctx, runner, p, i, first+retries, m)
		leave()
		if err != nil {
			return err
		}
		typ := ""
		if res.ExceptionInfo != nil {
			typ = res.ExceptionInfo.Type
		}
		decision := p.Config.Retry.Decide(typ, retries)
		if !decision.Retry || ended() {
			return nil
		}
		m.emit(Event{
			Kind: EventRetry, Retry: &Retry{TrialName: cfg.TrialName, TaskName: res.TaskName, Attempt: first + retries, ExceptionType: typ, Wait: decision.Wait},
			Message: fmt.Sprintf("trying again after %s in %s (retry %d of %d)", typ, decision.Wait, retries+1, p.Config.Retry.MaxRetries),
		})
		if r.sleep(ctx, decision.Wait) != nil || ended() {
			return nil
		}
		if err := setAside(filepath.Join(p.Config.Dir(), cfg.TrialName), first+retries, typ, m.journal); err != nil {
			return fmt.Errorf("keeping the earlier attempt of trial %q: %w", cfg.TrialName, err)
		}
	}
	return nil
}

// attempt makes one attempt at a trial.
func (r *Runner) attempt(ctx context.Context, runner *trial.Runner, p *Prepared, i, attempt int, m *monitor) (*jobdir.TrialResult, error) {
	if err := m.beginTrial(p.Trials[i], attempt, r.Trials.Lookup); err != nil {
		return nil, err
	}
	if err := m.place.check(); err != nil {
		return nil, err
	}
	return runner.Run(ctx, p.Trials[i], attempt)
}

func (r *Runner) sleep(ctx context.Context, d time.Duration) error {
	if r.Sleep != nil {
		return r.Sleep(ctx, d)
	}
	return clock.Sleep(ctx, d)
}

// attemptsDir keeps earlier attempts in a trial's directory. Harbor neither
// counts nor deletes what is there.
const attemptsDir = "attempts"

// setAside moves what attempt n left to attempts/n, so that the next one
// finds an empty trial directory.
func setAside(dir string, n int, reason string, j *journal.Writer) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if err := j.AppendSync(journal.Entry{Kind: journal.SetAside, Trial: filepath.Base(dir), Attempt: n, Reason: reason}); err != nil {
		return err
	}
	to := filepath.Join(dir, attemptsDir, fmt.Sprint(n))
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == attemptsDir {
			continue
		}
		if err := os.Rename(filepath.Join(dir, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
