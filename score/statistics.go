package score

import (
	"slices"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// Statistics say how far the numbers of a job can be trusted: on how many of
// the planned trials they rest, what came of the others, and how much they
// could differ by chance. They stand beside Harbor's metrics and change none.
type Statistics struct {
	Planned    int
	WithReward int // trials that have rewards, with an exception or without
	Outcomes   map[jobdir.Class]int
	Groups     []GroupStatistics // in order of first trial
}

// GroupStatistics are those of the trials with one [Record.EvalsKey]. What is
// pending belongs to no group.
type GroupStatistics struct {
	Group      string
	Trials     int
	WithReward int
	Outcomes   map[jobdir.Class]int
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
	s := Statistics{Planned: max(planned, len(records)), Outcomes: map[jobdir.Class]int{}}
	byGroup := map[string][]jobdir.Record{}
	var order []string
	for i := range records {
		r := &records[i]
		s.Outcomes[r.Class()]++
		if r.Rewards != nil {
			s.WithReward++
		}
		key := r.EvalsKey()
		if byGroup[key] == nil {
			order = append(order, key)
		}
		byGroup[key] = append(byGroup[key], *r)
	}
	s.Outcomes[jobdir.ClassPending] = s.Planned - len(records)
	for _, key := range order {
		s.Groups = append(s.Groups, newGroupStatistics(key, byGroup[key]))
	}
	return s
}

func newGroupStatistics(key string, records []jobdir.Record) GroupStatistics {
	g := GroupStatistics{Group: key, Trials: len(records), Outcomes: map[jobdir.Class]int{}, Agreement: AgreementOf(records)}
	var names []string
	for i := range records {
		r := &records[i]
		g.Outcomes[r.Class()]++
		if r.Rewards != nil {
			g.WithReward++
		}
		for name := range r.Rewards.All() {
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

// Agreement tells how far the attempts at the same task come to the same. Two
// attempts agree when both have the same rewards, 1 and 1.0 being the same and
// nan and nan too, or when both have none. Cancelled attempts do not count.
type Agreement struct {
	Repeated int // tasks with at least two attempts
	Agreeing int // of these, the tasks whose attempts all agree
	// FlakeRate is the probability that two attempts at the same task
	// disagree: of each repeated task the share of pairs of attempts that do,
	// averaged over the tasks. It is nan without repeated tasks.
	FlakeRate float64
}

// Share of the repeated tasks whose attempts all agree; nan without any.
func (a Agreement) Share() float64 { return float64(a.Agreeing) / float64(a.Repeated) }

// AgreementOf compares the attempts at each task, a task being its name and
// its dataset.
func AgreementOf(records []jobdir.Record) Agreement {
	type task struct{ dataset, name string }
	attempts := map[task][]*reward.Rewards{}
	for i := range records {
		if r := &records[i]; r.Class() != jobdir.ClassCancelled {
			key := task{r.Dataset(), r.TaskName}
			attempts[key] = append(attempts[key], r.Rewards)
		}
	}
	var a Agreement
	var rates []float64
	for _, list := range attempts {
		if len(list) < 2 {
			continue
		}
		a.Repeated++
		differing := 0
		for i, x := range list {
			for _, y := range list[:i] {
				if !SameRewards(x, y) {
					differing++
				}
			}
		}
		if differing == 0 {
			a.Agreeing++
		}
		rates = append(rates, 2*float64(differing)/float64(len(list)*(len(list)-1)))
	}
	slices.Sort(rates) // a fixed order of addition
	a.FlakeRate, _, _ = meanInterval(rates, 0.95)
	return a
}

// SameRewards reports whether two trials have the same rewards, in whatever
// order: equal numbers under the same names, or both none.
func SameRewards(a, b *reward.Rewards) bool {
	if (a == nil) != (b == nil) || a.Len() != b.Len() {
		return false
	}
	for name, x := range a.All() {
		y, ok := b.Get(name)
		if !ok {
			return false
		}
		if c, ordered := value.Compare(x, y); (!ordered || c != 0) && !(isNaN(x) && isNaN(y)) {
			return false
		}
	}
	return true
}
