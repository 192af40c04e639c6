package score

import (
	"slices"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
)

// Statistics say how far the numbers of a job can be trusted: on how many of
// the planned trials they rest, the outcomes of the others, and how much they
// could differ by chance. They stand beside Harbor's metrics and change none.
type Statistics struct {
	Planned int
	// Counts of the trials that ended; Outcomes has those that did not as
	// [jobdir.ClassPending].
	Counts
	Groups []GroupStatistics // in order of first trial
}

// GroupStatistics are those of the trials with one [jobdir.Record.EvalsKey]. What is
// pending belongs to no group.
type GroupStatistics struct {
	Group string
	Counts
	// Means has one estimate for each name that the group's metrics have: one
	// where all trials have at most one reward, else one for each name in
	// order. A trial without a reward of the name counts as 0, as in metrics.
	Means     []NamedEstimate
	Agreement Agreement
}

// NamedEstimate is the estimate of the mean of one reward.
type NamedEstimate struct {
	Name string // of the reward; "reward" where no trial has any
	Estimate
}

// Coverage is the share of planned trials that have a reward; nan without any
// planned.
func (s *Statistics) Coverage() float64 { return float64(s.WithReward) / float64(s.Planned) }

// NewStatistics counts and estimates. records are the trials that ended;
// planned is how many there should be, at least as many.
func NewStatistics(records []jobdir.Record, planned int) Statistics {
	s := Statistics{Planned: max(planned, len(records)), Counts: newCounts(records)}
	byGroup := map[string][]jobdir.Record{}
	var order []string
	for i := range records {
		key := records[i].EvalsKey()
		if byGroup[key] == nil {
			order = append(order, key)
		}
		byGroup[key] = append(byGroup[key], records[i])
	}
	s.Outcomes[jobdir.ClassPending] = s.Planned - len(records)
	for _, key := range order {
		s.Groups = append(s.Groups, newGroupStatistics(key, byGroup[key]))
	}
	return s
}

func newGroupStatistics(key string, records []jobdir.Record) GroupStatistics {
	g := GroupStatistics{Group: key, Counts: newCounts(records), Agreement: AgreementOf(records)}
	var names []string
	for i := range records {
		for name := range records[i].Rewards.All() {
			if at, found := slices.BinarySearch(names, name); !found {
				names = slices.Insert(names, at, name)
			}
		}
	}
	if len(names) == 0 {
		names = []string{reward.Name}
	}
	for _, name := range names {
		// A reward that is an int beyond all floats has no estimate.
		if e, err := EstimateMean(records, "", name); err == nil {
			g.Means = append(g.Means, NamedEstimate{Name: name, Estimate: e})
		}
	}
	return g
}
