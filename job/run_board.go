package job

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// board is where a running job is counted. Everything that happens passes
// through it, one thing at a time.
type board struct {
	dir  string
	name string
	now  func() time.Time
	tell func(Event)
	p    *Prepared
	// metrics are those of the job, bound to what runs scripts.
	metrics score.Metrics
	// journal is written before anything else is done with an event; fail ends
	// the job when it cannot be.
	journal *jobdir.JournalWriter
	fail    func(error)

	mu      sync.Mutex // guards what follows, and the order of events
	live    *score.Live
	dirty   bool // the file is older than live
	results map[int]jobdir.Record
	classes map[string]class // of ended trials, by name
	counts  Progress
	groups  map[string]int // ended trials by key of evals
}

// class is what came of a trial, for counting.
type class struct {
	group           string
	scored, errored bool
	exception       string
}

func newBoard(r *Runner, s *started) *board {
	p := s.p
	// A clock that was set back since the job began does not end it before.
	now := clock.NotBefore(r.Trials.Now, p.StartedAt.In(r.Trials.Now().Location()))
	metrics := p.Metrics.Bind(r.Scripts)
	b := &board{
		metrics: metrics,
		dir:     p.Config.Dir(), name: p.Config.JobName, now: now, tell: r.Emit, p: p, journal: s.journal,
		live: score.NewLive(score.LiveConfig{
			ID: p.ID, StartedAt: p.StartedAt, Now: jobdir.Local(now()), Total: len(p.Trials),
			Metrics: metrics, Existing: p.Existing, Retries: p.Retries,
		}),
		results: map[int]jobdir.Record{},
		classes: map[string]class{},
		groups:  map[string]int{},
		counts:  Progress{Total: len(p.Trials), Errors: map[string]int{}},
	}
	for _, rec := range p.Existing {
		b.count(rec)
	}
	return b
}

// emit passes an event on. Whoever listens sees the job as it is after it.
func (b *board) emit(kind EventKind, t *trial.Event, message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.emitLocked(kind, t, message)
}

func (b *board) emitLocked(kind EventKind, t *trial.Event, message string) {
	if b.tell == nil {
		return
	}
	b.tell(Event{Kind: kind, Time: b.now(), JobName: b.name, Trial: t, Message: message, Progress: b.progress()})
}

func (b *board) emitEnd(out *Outcome, message string) {
	if b.tell == nil {
		return
	}
	stats := score.NewStatistics(out.Records, len(b.p.Trials))
	b.tell(Event{Kind: EventJobEnd, Time: b.now(), JobName: b.name, Message: message, Progress: b.progress(), Statistics: &stats})
}

// trialEvent takes what a trial tells.
func (b *board) trialEvent(e trial.Event) {
	b.journalEvent(e) // trials wait for the disk together, not one after the other
	b.mu.Lock()
	defer b.mu.Unlock()
	at := jobdir.UTC(e.Time)
	var err error
	switch e.Kind {
	case trial.EventStart:
		b.uncount(e.TrialName)
		err = b.live.Start(e.TrialName, at)
		b.dirty = true
	case trial.EventCancel:
		b.live.Cancel(e.TrialName, at)
		b.dirty = true
	case trial.EventEnd:
		rec := jobdir.RecordOf(e.Result)
		err = b.live.End(rec, at)
		b.count(rec)
		b.dirty = true
	}
	b.emitLocked(EventTrial, &e, "")
	if err != nil {
		b.emitLocked(EventWarning, nil, err.Error())
	}
}

// ended keeps the result of a trial for the final assembly.
func (b *board) ended(i int, res *jobdir.TrialResult) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.results[i] = jobdir.RecordOf(res)
}

func (b *board) count(rec jobdir.Record) {
	c := class{group: rec.EvalsKey(), scored: rec.Rewards != nil, errored: rec.ExceptionType != "", exception: rec.ExceptionType}
	b.classes[rec.TrialName] = c
	b.add(c, 1)
}

func (b *board) uncount(name string) {
	if c, ok := b.classes[name]; ok {
		delete(b.classes, name)
		b.add(c, -1)
	}
}

func (b *board) add(c class, n int) {
	b.groups[c.group] += n
	p := &b.counts
	p.Done += n
	switch {
	case c.scored && c.errored:
		p.ErroredWithReward += n
	case c.scored:
		p.Scored += n
	case c.errored:
		p.ErroredUnscored += n
	default:
		p.UnscoredWithoutFail += n
	}
	if c.errored {
		p.Errors[c.exception] += n
		if p.Errors[c.exception] == 0 {
			delete(p.Errors, c.exception)
		}
	}
}

// progress is a snapshot that nobody changes any more.
func (b *board) progress() Progress {
	p := b.counts
	p.Errors = make(map[string]int, len(b.counts.Errors))
	for typ, n := range b.counts.Errors {
		p.Errors[typ] = n
	}
	stats := &b.live.Result().Stats
	p.Running, p.Pending = stats.NRunningTrials, stats.NPendingTrials
	p.Metrics = b.groupMetrics(stats)
	return p
}

// groupMetrics lists the first metric of every group.
func (b *board) groupMetrics(stats *jobdir.Stats) []GroupMetric {
	var all []GroupMetric
	for key, e := range stats.Evals.All() {
		if len(e.Metrics) == 0 {
			continue
		}
		for name, v := range e.Metrics[0].All() {
			all = append(all, GroupMetric{Group: key, Name: name, Value: value.Repr(v), N: b.groups[key], NScored: e.NTrials})
		}
	}
	return all
}

// writeInterval is how often the live file is written at most. It lists every
// trial by name, so its size grows with the job; its cost must not.
const writeInterval = 500 * time.Millisecond

// writeWhileRunning keeps the file current; the returned function ends that.
func (b *board) writeWhileRunning() (stop func() error) {
	done := make(chan struct{})
	var writer sync.WaitGroup
	var failed error
	writer.Go(func() {
		ticker := time.NewTicker(writeInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				if err := b.writeIfDirty(); err != nil && failed == nil {
					failed = err
					b.emit(EventWarning, nil, err.Error())
				}
			case <-done:
				return
			}
		}
	})
	return func() error {
		close(done)
		writer.Wait()
		// The last state counts; a write that failed before may succeed now.
		return b.writeIfDirty()
	}
}

func (b *board) writeIfDirty() error {
	b.mu.Lock()
	if !b.dirty {
		b.mu.Unlock()
		return nil
	}
	b.dirty = false
	text := b.live.AppendJSON(nil)
	b.mu.Unlock()
	if err := atomicfile.WriteUnsynced(filepath.Join(b.dir, "result.json"), text, 0o644); err != nil {
		b.mu.Lock()
		b.dirty = true
		b.mu.Unlock()
		return err
	}
	return nil
}

func (b *board) write() error {
	return atomicfile.Write(filepath.Join(b.dir, "result.json"), b.live.AppendJSON(nil), 0o644)
}

// finish writes the final file. An interrupted job keeps its live one, which
// has no end.
func (b *board) finish(ctx context.Context) (*Outcome, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := &Outcome{Result: b.live.Result(), Progress: b.progress()}
	if ctx.Err() != nil {
		out.Interrupted = true
		out.Records = b.records()
		b.emitEnd(out, "interrupted")
		text := b.live.AppendJSON(nil)
		if err := atomicfile.Write(filepath.Join(b.dir, jobdir.ResultFile), text, 0o644); err != nil {
			return out, err
		}
		return out, b.endEntry(ctx, text)
	}
	out.Records = b.records()
	stats, err := score.Aggregate(b.metrics, out.Records, len(b.p.Trials), b.live.Result().Stats.NRetries)
	if err != nil {
		return nil, err
	}
	now := jobdir.Local(b.now())
	out.Result = &jobdir.Result{
		ID: b.p.ID, StartedAt: b.p.StartedAt, UpdatedAt: &now, FinishedAt: &now,
		NTotalTrials: len(b.p.Trials), Stats: stats,
	}
	text := out.Result.AppendJSON(nil)
	if err := atomicfile.Write(filepath.Join(b.dir, jobdir.ResultFile), text, 0o644); err != nil {
		return nil, err
	}
	if err := b.endEntry(ctx, text); err != nil {
		return nil, err
	}
	out.Progress.Metrics = b.groupMetrics(&stats)
	b.emitEnd(out, "")
	return out, nil
}

// records lists the trials that ended: those that were there, then those that
// ran, in order of the plan.
func (b *board) records() []jobdir.Record {
	records := slices.Clone(b.p.Existing)
	for _, i := range b.p.Remaining {
		if rec, ok := b.results[i]; ok {
			records = append(records, rec)
		}
	}
	return records
}
