package score

import (
	"slices"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/jobdir"
)

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
		if r.ExceptionType == exception.CancelledError {
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
		if r.ExceptionType == exception.CancelledError {
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
