package job

import (
	"slices"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/schema"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// Result is what came of a job: the content of its result.json (Harbor job
// format, section 5.1).
type Result struct {
	ID           uuid.UUID
	StartedAt    trial.Time // naive local
	UpdatedAt    *trial.Time
	FinishedAt   *trial.Time // nil while the job runs
	NTotalTrials int
	Stats        Stats
}

// Stats counts and aggregates the trials of a job.
type Stats struct {
	NCompletedTrials int // finished, errored ones included
	NErroredTrials   int
	NRunningTrials   int
	NPendingTrials   int
	NCancelledTrials int
	NRetries         int
	Evals            schema.Map[*Eval] // by [Record.EvalsKey], in order of first trial
	Usage            Usage
}

// Eval counts and aggregates one group of trials: same agent, model and
// dataset.
type Eval struct {
	NTrials        int // trials with rewards
	NErrors        int // trials with an exception; both may count the same trial
	Metrics        []*value.Object
	PassAtK        []reward.PassAtK
	RewardStats    reward.Stats         // which trials got which reward
	ExceptionStats schema.Map[[]string] // trial names by exception type
}

// setPending derives the number of trials that have not started.
func (s *Stats) setPending(total int) {
	s.NPendingTrials = max(total-s.NCompletedTrials-s.NRunningTrials, 0)
}

// eval returns the group with a key, made if need be.
func (s *Stats) eval(key string) *Eval {
	e, ok := s.Evals.Get(key)
	if !ok {
		e = &Eval{}
		s.Evals.Set(key, e)
	}
	return e
}

// count adds a finished trial (Harbor job format, section 5.3).
func (s *Stats) count(r Record) {
	s.NCompletedTrials++
	e := s.eval(r.EvalsKey())
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
	s.Usage.add(r.Usage)
}

// uncount takes back a trial. Entries that become empty stay.
func (s *Stats) uncount(r Record) {
	s.NCompletedTrials--
	e := s.eval(r.EvalsKey())
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
	s.Usage.sub(r.Usage)
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
