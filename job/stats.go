package job

import (
	"math"
	"slices"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/internal/pyvalue"
	"github.com/proctor-run/proctor/internal/schema"
	"github.com/proctor-run/proctor/trial"
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
	Metrics        []*pyvalue.Object
	PassAtK        []PassAtK
	RewardStats    RewardStats
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
		for name, x := range r.Rewards.All() {
			e.RewardStats.add(name, x, r.TrialName)
		}
	}
	if r.ExceptionType != "" {
		names, _ := e.ExceptionStats.Get(r.ExceptionType)
		e.ExceptionStats.Set(r.ExceptionType, append(names, r.TrialName))
		e.NErrors++
		s.NErroredTrials++
		if r.ExceptionType == trial.Cancelled {
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
		for name, x := range r.Rewards.All() {
			e.RewardStats.remove(name, x, r.TrialName)
		}
	}
	if r.ExceptionType != "" {
		if names, ok := e.ExceptionStats.Get(r.ExceptionType); ok {
			e.ExceptionStats.Set(r.ExceptionType, removeLast(names, r.TrialName))
		}
		e.NErrors--
		s.NErroredTrials--
		if r.ExceptionType == trial.Cancelled {
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

// RewardStats lists, per reward name and value, the trials that got it, in
// order of first appearance. Values that are equal share one entry under the
// spelling that came first: 1 and 1.0 do. A nan equals nothing and has an
// entry of its own every time (reward semantics, section 9).
//
// The zero value is empty and ready.
type RewardStats struct {
	byName schema.Map[*valueStats]
}

// RewardValue is one entry of [RewardStats].
type RewardValue struct {
	Value  pyvalue.Number
	Trials []string
}

type valueStats struct {
	entries []RewardValue
	index   map[numberKey]int // position of a value; never of a nan
}

// numberKey is the same for numbers that are equal.
type numberKey struct {
	small int64
	bits  uint64 // of a float that is no int
	large string // digits of an int beyond int64
}

func keyOf(x pyvalue.Number) numberKey {
	n, isInt := x.(pyvalue.Int)
	if f, isFloat := x.(pyvalue.Float); isFloat {
		if f != pyvalue.Float(math.Trunc(float64(f))) || math.IsInf(float64(f), 0) {
			return numberKey{bits: math.Float64bits(float64(f))}
		}
		n, _ = pyvalue.Truncate(float64(f))
	} else if !isInt {
		return numberKey{}
	}
	if small, fits := n.Int64(); fits {
		return numberKey{small: small}
	}
	return numberKey{large: n.String()}
}

func isNaN(x pyvalue.Number) bool {
	f, ok := x.(pyvalue.Float)
	return ok && math.IsNaN(float64(f))
}

func (s *RewardStats) add(name string, x pyvalue.Number, trialName string) {
	values, ok := s.byName.Get(name)
	if !ok {
		values = &valueStats{index: map[numberKey]int{}}
		s.byName.Set(name, values)
	}
	if !isNaN(x) {
		key := keyOf(x)
		if i, ok := values.index[key]; ok {
			values.entries[i].Trials = append(values.entries[i].Trials, trialName)
			return
		}
		values.index[key] = len(values.entries)
	}
	values.entries = append(values.entries, RewardValue{Value: x, Trials: []string{trialName}})
}

func (s *RewardStats) remove(name string, x pyvalue.Number, trialName string) {
	values, ok := s.byName.Get(name)
	if !ok {
		return
	}
	if !isNaN(x) {
		if i, ok := values.index[keyOf(x)]; ok {
			e := &values.entries[i]
			e.Trials = removeLast(e.Trials, trialName)
		}
		return
	}
	for i := len(values.entries) - 1; i >= 0; i-- {
		e := &values.entries[i]
		if isNaN(e.Value) && slices.Contains(e.Trials, trialName) {
			e.Trials = removeLast(e.Trials, trialName)
			return
		}
	}
}

// Names returns the reward names in order.
func (s *RewardStats) Names() []string {
	names := make([]string, 0, s.byName.Len())
	for name := range s.byName.All() {
		names = append(names, name)
	}
	return names
}

// Values returns the entries of a reward name in order. The result must not be
// changed.
func (s *RewardStats) Values(name string) []RewardValue {
	values, ok := s.byName.Get(name)
	if !ok {
		return nil
	}
	return values.entries
}
