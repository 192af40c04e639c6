package job

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/internal/redact"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// monitor follows a running job: everything that happens passes through it, one
// thing at a time, to the journal, to the counts and to whoever listens.
type monitor struct {
	dir   string
	place *place
	name  string
	now   func() time.Time
	// listener is called with each event; it may be nil.
	listener func(Event)
	p        *Prepared
	secrets  *redact.Set
	// metrics are those of the job, bound to what runs scripts.
	metrics score.Metrics
	// journal is written before anything else is done with an event; fail ends
	// the job when it cannot be.
	journal *journal.Writer
	fail    func(error)
	// meter counts what the models of all trials are used for.
	meter *llm.Meter
	// callsModel tells of an agent whether it calls models itself.
	callsModel func(agent string) bool

	mu    sync.Mutex // guards what follows, and the order of events
	live  *score.Live
	dirty bool // the file is older than live
}

func newMonitor(r *Runner, s *started) *monitor {
	p := s.p
	// A clock that was set back since the job began does not end it before.
	now := clock.NotBefore(r.Trials.Now, p.StartedAt.In(r.Trials.Now().Location()))
	metrics := p.Metrics.Bind(r.Scripts)
	m := &monitor{
		metrics: metrics, secrets: s.secrets, callsModel: r.callsModel,
		dir: p.Config.Dir(), place: s.place, name: p.Config.JobName, now: now, listener: r.Emit, p: p, journal: s.journal,
		live: score.NewLive(score.LiveConfig{
			ID: p.ID, StartedAt: p.StartedAt, Now: jobdir.Local(now()), Total: len(p.Trials),
			Metrics: metrics, Existing: p.Existing, Retries: p.Retries,
		}),
	}
	return m
}

// emit passes an event on. Whoever listens sees the job as it is after it.
func (m *monitor) emit(e Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.send(e)
}

// warnOf emits a warning of an error, if it is one.
func (m *monitor) warnOf(err error) {
	if err != nil {
		m.emit(Event{Kind: EventWarning, Message: err.Error()})
	}
}

// send is emit for those who hold mu.
func (m *monitor) send(e Event) {
	if m.listener == nil {
		return
	}
	e.Time, e.JobName, e.Progress = m.now(), m.name, m.progress()
	e.Message = m.secrets.String(e.Message)
	m.listener(e)
}

func (m *monitor) emitEnd(out *Summary, message string) {
	e := Event{Kind: EventJobEnd, Message: message, Statistics: &out.Statistics, Models: &out.Models}
	if !out.Interrupted {
		e.Records = out.Records
	}
	m.send(e)
}

// trialEvent takes what a trial tells.
func (m *monitor) trialEvent(e trial.Event) {
	var rec jobdir.Record // of a trial that ended: the one that is journaled, counted and kept
	if e.Kind == trial.EventEnd {
		rec = jobdir.RecordOf(e.Result)
	}
	m.journalEvent(e, rec) // trials wait for the disk together, not one after the other
	m.mu.Lock()
	defer m.mu.Unlock()
	at := jobdir.UTC(e.Time)
	var err error
	switch e.Kind {
	case trial.EventStart:
		err = m.live.Start(e.TrialName, at)
		m.dirty = true
	case trial.EventCancel:
		m.live.Cancel(e.TrialName, at)
		m.dirty = true
	case trial.EventEnd:
		err = m.live.End(rec, at)
		m.dirty = true
	}
	m.send(Event{Kind: EventTrial, Trial: &e})
	if err != nil {
		m.send(Event{Kind: EventWarning, Message: err.Error()})
	}
}

// progress is how the job stands: a snapshot that does not change any more.
func (m *monitor) progress() Progress {
	stats := &m.live.Result().Stats
	return Progress{
		Total: len(m.p.Trials), Running: stats.NRunningTrials, Pending: stats.NPendingTrials,
		Ended: m.live.Counts(), Metrics: m.groupMetrics(stats), Spent: m.meter.Spent(),
	}
}

// groupMetrics lists the first metric of every group.
func (m *monitor) groupMetrics(stats *jobdir.Stats) []GroupMetric {
	var all []GroupMetric
	for key, e := range stats.Evals.All() {
		if len(e.Metrics) == 0 {
			continue
		}
		for name, v := range e.Metrics[0].All() {
			all = append(all, GroupMetric{Group: key, Name: name, Value: value.Repr(v), N: m.live.InGroup(key), NScored: e.NTrials})
		}
	}
	return all
}

// writeInterval is how often the live file is written at most. It lists every
// trial by name, so its size grows with the job; its cost must not.
const writeInterval = 500 * time.Millisecond

// writeWhileRunning keeps the file current; the returned function ends that.
func (m *monitor) writeWhileRunning() (stop func() error) {
	done := make(chan struct{})
	var writer sync.WaitGroup
	var failed error
	writer.Go(func() {
		ticker := time.NewTicker(writeInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				if err := m.writeIfDirty(); err != nil && failed == nil {
					failed = err
					m.warnOf(err)
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
		return m.writeIfDirty()
	}
}

func (m *monitor) writeIfDirty() error {
	m.mu.Lock()
	if !m.dirty {
		m.mu.Unlock()
		return nil
	}
	m.dirty = false
	text := m.live.AppendJSON(nil)
	m.mu.Unlock()
	err := m.place.check()
	if err == nil {
		err = atomicfile.WriteUnsynced(filepath.Join(m.dir, "result.json"), text, 0o644)
	}
	if err != nil {
		m.mu.Lock()
		m.dirty = true
		m.mu.Unlock()
		return err
	}
	return nil
}

func (m *monitor) write() error {
	return atomicfile.Write(filepath.Join(m.dir, "result.json"), m.live.AppendJSON(nil), 0o644)
}

// finish writes the final file. An interrupted job keeps its live one, which
// has no end.
func (m *monitor) finish(ctx context.Context) (*Summary, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	records := m.records()
	out := &Summary{
		Result: m.live.Result(), Progress: m.progress(), Records: records, Statistics: score.NewStatistics(records, len(m.p.Trials)),
		Models: score.NewModelUse(records, m.callsModel),
	}
	interrupt := journal.Entry{Kind: journal.JobInterrupted}
	if ctx.Err() == nil {
		out.Budget = m.unfinished(records)
	}
	if ctx.Err() != nil || out.Budget != nil {
		why := "interrupted"
		if out.Budget != nil {
			why = out.Budget.Error()
			interrupt.Reason = why
		}
		out.Interrupted = true
		m.emitEnd(out, why)
		text := m.live.AppendJSON(nil)
		if err := atomicfile.Write(filepath.Join(m.dir, scan.ResultFile), text, 0o644); err != nil {
			return out, err
		}
		return out, m.endEntry(interrupt, text)
	}
	// Harbor's final numbers are those of the trials in their final order, live
	// ones those in order of completion.
	stats, err := score.Aggregate(m.metrics, out.Records, len(m.p.Trials), m.live.Result().Stats.NRetries)
	if err != nil {
		return nil, err
	}
	now := jobdir.Local(m.now())
	out.Result = &jobdir.Result{
		ID: m.p.ID, StartedAt: m.p.StartedAt, UpdatedAt: &now, FinishedAt: &now,
		NTotalTrials: len(m.p.Trials), Stats: stats,
	}
	text := out.Result.AppendJSON(nil)
	if err := atomicfile.Write(filepath.Join(m.dir, scan.ResultFile), text, 0o644); err != nil {
		return nil, err
	}
	if err := m.endEntry(journal.Entry{Kind: journal.JobFinished}, text); err != nil {
		return nil, err
	}
	out.Progress.Metrics = m.groupMetrics(&stats)
	m.emitEnd(out, "")
	return out, nil
}

// records lists the trials that ended: those that were there, then those that
// ran, in order of the plan.
func (m *monitor) records() []jobdir.Record {
	records := slices.Clone(m.p.Existing)
	for _, i := range m.p.Remaining {
		if rec, ok := m.live.Finished(m.p.Trials[i].TrialName); ok {
			records = append(records, rec)
		}
	}
	return records
}
