package score

import (
	"maps"
	"slices"

	"github.com/proctor-run/proctor/jobdir"
)

// Counts has the outcomes of trials that ended.
type Counts struct {
	Trials     int
	WithReward int // trials that have rewards, with an exception or without
	// Outcomes are the trials of each class.
	Outcomes map[jobdir.Class]int
	// Errors are the trials with an exception, by its type, or with one of a step.
	Errors map[string]int
}

// newCounts counts trials.
func newCounts(records []jobdir.Record) Counts {
	c := Counts{Outcomes: map[jobdir.Class]int{}, Errors: map[string]int{}}
	for i := range records {
		c.add(&records[i], 1)
	}
	return c
}

// add counts a trial n times; -1 takes it back.
func (c *Counts) add(r *jobdir.Record, n int) {
	c.Trials += n
	if r.Rewards != nil {
		c.WithReward += n
	}
	addTo(c.Outcomes, r.Class(), n)
	if typ := r.Exception(); typ != "" {
		addTo(c.Errors, typ, n)
	}
}

// addTo leaves no entry of 0.
func addTo[K comparable](counts map[K]int, key K, n int) {
	if counts[key] += n; counts[key] == 0 {
		delete(counts, key)
	}
}

// Clone returns a copy that does not change with c.
func (c *Counts) Clone() Counts {
	return Counts{Trials: c.Trials, WithReward: c.WithReward, Outcomes: maps.Clone(c.Outcomes), Errors: maps.Clone(c.Errors)}
}

// setPending derives the number of trials that have not started.
func setPending(s *jobdir.Stats, total int) {
	s.NPendingTrials = max(total-s.NCompletedTrials-s.NRunningTrials, 0)
}

// evalOf returns the group with a key, made if need be.
func evalOf(s *jobdir.Stats, key string) *jobdir.Eval {
	e, ok := s.Evals.Get(key)
	if !ok {
		e = &jobdir.Eval{}
		s.Evals.Set(key, e)
	}
	return e
}

// countTrial adds a finished trial (Harbor job format, section 5.3).
func countTrial(s *jobdir.Stats, r jobdir.Record) {
	s.NCompletedTrials++
	e := evalOf(s, r.EvalsKey())
	if r.Rewards != nil {
		e.NTrials++
		e.RewardStats.Add(r.Rewards, r.TrialName)
	}
	if r.ExceptionType != "" {
		names, _ := e.ExceptionStats.Get(r.ExceptionType)
		e.ExceptionStats.Set(r.ExceptionType, append(names, r.TrialName))
		e.NErrors++
		s.NErroredTrials++
		if r.Class() == jobdir.ClassCancelled {
			s.NCancelledTrials++
		}
	}
	s.Usage.Add(r.Usage)
}

// uncountTrial takes back a trial. Entries that become empty stay.
func uncountTrial(s *jobdir.Stats, r jobdir.Record) {
	s.NCompletedTrials--
	e := evalOf(s, r.EvalsKey())
	if r.Rewards != nil {
		e.NTrials--
		e.RewardStats.Remove(r.Rewards, r.TrialName)
	}
	if r.ExceptionType != "" {
		if names, ok := e.ExceptionStats.Get(r.ExceptionType); ok {
			e.ExceptionStats.Set(r.ExceptionType, removeLast(names, r.TrialName))
		}
		e.NErrors--
		s.NErroredTrials--
		if r.Class() == jobdir.ClassCancelled {
			s.NCancelledTrials--
		}
	}
	s.Usage.Sub(r.Usage)
}

// removeLast removes a name from a list, looking from the end, where a trial
// that is retried stands.
func removeLast(names []string, name string) []string {
	for i := len(names) - 1; i >= 0; i-- {
		if names[i] == name {
			return slices.Delete(names, i, i+1)
		}
	}
	return names
}

// TotalUsage is what trials consumed together.
func TotalUsage(records []jobdir.Record) jobdir.Usage {
	var total jobdir.Usage
	for _, r := range records {
		total.Add(r.Usage)
	}
	return total
}
