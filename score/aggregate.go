package score

import (
	"fmt"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
)

// Aggregator turns records of trials, added in their final order, into the
// final statistics of a job. It holds the records' names and numbers, no
// documents. Use [NewAggregator].
type Aggregator struct {
	metrics Metrics
	stats   jobdir.Stats
	groups  map[string]*group
}

// group is what a group of trials needs besides its [Eval].
type group struct {
	acc      accumulator
	attempts attempts
	metrics  []Metric
	rewards  []*reward.Rewards // only for metrics that compute from the list
}

// NewAggregator returns an empty aggregator.
func NewAggregator(m Metrics) *Aggregator {
	return &Aggregator{metrics: m, groups: map[string]*group{}}
}

// Add counts one trial.
func (a *Aggregator) Add(r jobdir.Record) {
	countTrial(&a.stats, r)
	key := r.EvalsKey()
	g, ok := a.groups[key]
	if !ok {
		g = &group{metrics: a.metrics[finalName(key)]}
		a.groups[key] = g
	}
	g.acc.add(r.Rewards)
	g.attempts.add(r.TaskName, r.Rewards)
	if needList(g.metrics) {
		g.rewards = append(g.rewards, r.Rewards)
	}
}

func needList(metrics []Metric) bool {
	for _, m := range metrics {
		if m.Compute != nil {
			return true
		}
	}
	return false
}

// Stats assembles the statistics of the trials so far, for a job of total
// trials. The error is that of the first metric which cannot be computed; it
// aborts a job in the reference (reward semantics, section 8.4).
//
// The result shares memory with the aggregator.
func (a *Aggregator) Stats(total, retries int) (jobdir.Stats, error) {
	a.stats.NRetries = retries
	setPending(&a.stats, total)
	for key, e := range a.stats.Evals.All() {
		g := a.groups[key]
		e.Metrics = nil
		for _, m := range g.metrics {
			value, err := m.compute(&g.acc, g.rewards)
			if err != nil {
				return jobdir.Stats{}, fmt.Errorf("computing metric %q of %q: %w", m.Type, key, err)
			}
			e.Metrics = append(e.Metrics, value)
		}
		e.PassAtK = g.attempts.passAtK()
	}
	return a.stats, nil
}

// Aggregate gives the final statistics of records in their final order: trials
// that were there when the job was resumed, then new ones in order of the
// plan.
func Aggregate(m Metrics, records []jobdir.Record, total, retries int) (jobdir.Stats, error) {
	a := NewAggregator(m)
	for _, r := range records {
		a.Add(r)
	}
	return a.Stats(total, retries)
}
