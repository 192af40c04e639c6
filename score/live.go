package score

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// Live keeps a job's result up to date while its trials run (Harbor job
// format, section 5.6). Tell it every start, cancellation and end; it gives the
// numbers that the reference would have in its file at that moment: metrics
// over trials in order of completion, no pass@k, and a trial that starts again
// taken back until it ends again.
//
// The cost of an event does not grow with the number of trials; a restart
// costs as much as the trials of its group that ended since. Only the text of
// the file grows, for it lists every trial by name: write it at intervals, not
// at every event of a big job.
//
// A Live is for one goroutine at a time.
type Live struct {
	result    jobdir.Result
	metrics   Metrics
	groups    map[string]*liveGroup
	counts    Counts
	finished  map[string]jobdir.Record
	running   map[string]bool
	cancelled map[string]bool
}

// LiveConfig describes the job that a [Live] follows.
type LiveConfig struct {
	ID        uuid.UUID
	StartedAt jobdir.Time // naive local; of the first run when resumed
	Now       jobdir.Time // naive local
	Total     int         // number of planned trials
	Metrics   Metrics
	Existing  []jobdir.Record // trials that a resumed job finished earlier
	Retries   int             // retries of earlier runs
}

// NewLive returns the state of a job about to start.
func NewLive(c LiveConfig) *Live {
	l := &Live{
		result: jobdir.Result{
			ID:           c.ID,
			StartedAt:    c.StartedAt,
			NTotalTrials: c.Total,
			Stats:        jobdir.Stats{NRetries: c.Retries},
		},
		metrics:   c.Metrics,
		groups:    map[string]*liveGroup{},
		counts:    newCounts(nil),
		finished:  map[string]jobdir.Record{},
		running:   map[string]bool{},
		cancelled: map[string]bool{},
	}
	for _, r := range c.Existing {
		l.add(r)
	}
	l.touch(c.Now)
	return l
}

// Start tells that an attempt of a trial began, at a UTC time. A trial that
// had ended counts as retried. The error is that of a metric which cannot be
// computed without it; the state is consistent nevertheless.
func (l *Live) Start(trialName string, at jobdir.Time) error {
	err := l.takeBack(trialName)
	l.running[trialName] = true
	l.touch(at)
	return err
}

func (l *Live) takeBack(trialName string) error {
	previous, ok := l.finished[trialName]
	if !ok {
		return nil
	}
	l.remove(previous)
	l.result.Stats.NRetries++
	return l.refresh(previous)
}

// Cancel tells that a running trial was asked to stop.
func (l *Live) Cancel(trialName string, at jobdir.Time) {
	l.cancelled[trialName] = true
	l.touch(at)
}

// End tells that an attempt of a trial ended. The error is that of a metric
// which cannot be computed with it, and aborts a job in the reference; the
// state is consistent nevertheless.
func (l *Live) End(r jobdir.Record, at jobdir.Time) error {
	if previous, ok := l.finished[r.TrialName]; ok {
		l.remove(previous)
	}
	l.add(r)
	delete(l.running, r.TrialName)
	err := l.refresh(r)
	l.touch(at)
	return err
}

// add counts a trial that ended.
func (l *Live) add(r jobdir.Record) {
	countTrial(&l.result.Stats, r)
	l.counts.add(&r, 1)
	l.group(r).append(r)
	l.finished[r.TrialName] = r
	if r.Class() == jobdir.ClassCancelled {
		l.cancelled[r.TrialName] = true
	}
}

// remove takes back what add counted.
func (l *Live) remove(r jobdir.Record) {
	delete(l.finished, r.TrialName)
	l.group(r).remove(r.TrialName)
	uncountTrial(&l.result.Stats, r)
	l.counts.add(&r, -1)
	if r.Class() == jobdir.ClassCancelled {
		delete(l.cancelled, r.TrialName)
	}
}

// Counts returns the outcomes of the trials that have ended.
func (l *Live) Counts() Counts { return l.counts.Clone() }

// InGroup is how many trials of a group have ended.
func (l *Live) InGroup(key string) int {
	if g := l.groups[key]; g != nil {
		return len(g.entries)
	}
	return 0
}

// Finished returns the record of a trial that has ended and not begun again.
func (l *Live) Finished(trialName string) (jobdir.Record, bool) {
	r, ok := l.finished[trialName]
	return r, ok
}

// Result returns the present state. It changes with the next event.
func (l *Live) Result() *jobdir.Result { return &l.result }

// AppendJSON appends the text of the result file as it is now.
func (l *Live) AppendJSON(dst []byte) []byte { return l.result.AppendJSON(dst) }

func (l *Live) group(r jobdir.Record) *liveGroup {
	key := r.EvalsKey()
	g, ok := l.groups[key]
	if !ok {
		g = &liveGroup{}
		l.groups[key] = g
	}
	return g
}

// touch refreshes the counters that every event writes.
func (l *Live) touch(at jobdir.Time) {
	l.result.UpdatedAt = &at
	s := &l.result.Stats
	s.NRunningTrials = len(l.running)
	s.NCancelledTrials = len(l.cancelled)
	setPending(s, l.result.NTotalTrials)
}

// refresh recomputes the metrics of the group of a trial, those of the full
// dataset name.
func (l *Live) refresh(r jobdir.Record) error {
	key := r.EvalsKey()
	g, e := l.groups[key], evalOf(&l.result.Stats, key)
	if len(g.entries) == 0 {
		e.Metrics = nil
		return nil
	}
	metrics := l.metrics[r.Dataset()]
	values := make([]*value.Object, 0, len(metrics))
	for _, m := range metrics {
		value, err := m.compute(&g.acc, g.rewards(m))
		if err != nil {
			return fmt.Errorf("computing metric %q of %q: %w", m.Type, key, err)
		}
		values = append(values, value)
	}
	e.Metrics = values
	return nil
}

// liveGroup holds the trials of a group in order of completion, and the
// accumulator's state before every stride-th of them, so that taking one back
// repeats only what came after.
type liveGroup struct {
	acc         accumulator
	entries     []liveEntry
	checkpoints []snapshot
}

type liveEntry struct {
	trial   string
	rewards *reward.Rewards
}

// stride is the number of trials between two checkpoints: small enough that a
// retry repeats little, large enough that checkpoints cost little memory.
const stride = 64

func (g *liveGroup) append(r jobdir.Record) {
	g.entries = append(g.entries, liveEntry{r.TrialName, r.Rewards})
	g.count(len(g.entries) - 1)
}

// count adds entry i, all before it having been added.
func (g *liveGroup) count(i int) {
	if i%stride == 0 {
		g.checkpoints = append(g.checkpoints, g.acc.snapshot())
	}
	g.acc.add(g.entries[i].rewards)
}

// remove takes a trial out. It looks from the end, where a trial that is
// retried stands.
func (g *liveGroup) remove(trialName string) {
	i := len(g.entries) - 1
	for i >= 0 && g.entries[i].trial != trialName {
		i--
	}
	if i < 0 {
		return
	}
	g.entries = append(g.entries[:i], g.entries[i+1:]...)
	from := i / stride
	g.acc.restore(g.checkpoints[from])
	g.checkpoints = g.checkpoints[:from]
	for j := from * stride; j < len(g.entries); j++ {
		g.count(j)
	}
}

// rewards lists the rewards for a metric that computes from the list.
func (g *liveGroup) rewards(m Metric) []*reward.Rewards {
	if m.Compute == nil {
		return nil
	}
	list := make([]*reward.Rewards, len(g.entries))
	for i, e := range g.entries {
		list[i] = e.rewards
	}
	return list
}
