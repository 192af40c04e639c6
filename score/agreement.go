package score

import (
	"math"
	"slices"
	"strconv"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// Agreement says how far the attempts at the same task come to the same.
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

// Flaky is the number of tasks whose attempts disagree.
func (a Agreement) Flaky() int { return a.Repeated - a.Agreeing }

// AgreementOf compares the attempts at each task within each group. Two
// attempts agree when both have the same rewards, 1 and 1.0 being the same and
// nan and nan too, or when both have none. Cancelled attempts do not count.
//
// Its cost grows with the attempts, not with their pairs.
func AgreementOf(records []jobdir.Record) Agreement {
	var tasks [][]string
	for _, t := range attemptsByTask(records) {
		keys := make([]string, len(t.Rewards))
		for i, r := range t.Rewards {
			keys[i] = rewardsKey(r)
		}
		tasks = append(tasks, keys)
	}
	return agreementOf(tasks)
}

// agreementOf compares, for each task, the keys of its attempts: attempts agree
// when their keys are equal.
func agreementOf(tasks [][]string) Agreement {
	var a Agreement
	var rates []float64
	for _, keys := range tasks {
		n := len(keys)
		if n < 2 {
			continue
		}
		a.Repeated++
		same := map[string]int{}
		for _, key := range keys {
			same[key]++
		}
		differing := n * (n - 1) / 2
		for _, m := range same {
			differing -= m * (m - 1) / 2
		}
		if differing == 0 {
			a.Agreeing++
		}
		rates = append(rates, 2*float64(differing)/float64(n*(n-1)))
	}
	slices.Sort(rates) // a fixed order of addition
	a.FlakeRate, _, _ = meanInterval(rates, 0.95)
	return a
}

// AttemptsAtTask are the attempts at one task within a group.
type AttemptsAtTask struct {
	Group   string // the [jobdir.Record.EvalsKey] of the attempts
	Task    string
	Rewards []*reward.Rewards // of the attempts in order; nil is none
}

// FlakyTasks lists the tasks whose attempts disagree, as [AgreementOf] counts
// them, in order of their first attempts.
func FlakyTasks(records []jobdir.Record) []AttemptsAtTask {
	return slices.DeleteFunc(attemptsByTask(records), func(t AttemptsAtTask) bool {
		return !slices.ContainsFunc(t.Rewards, func(x *reward.Rewards) bool { return !SameRewards(x, t.Rewards[0]) })
	})
}

// attemptsByTask groups the attempts that were not cancelled, in order of first
// attempts. A task is its name and its dataset.
func attemptsByTask(records []jobdir.Record) []AttemptsAtTask {
	type key struct{ group, dataset, task string }
	index := map[key]int{}
	var all []AttemptsAtTask
	for i := range records {
		r := &records[i]
		if r.Class() == jobdir.ClassCancelled {
			continue
		}
		k := key{r.EvalsKey(), r.Dataset(), r.TaskName}
		at, seen := index[k]
		if !seen {
			at = len(all)
			index[k] = at
			all = append(all, AttemptsAtTask{Group: k.group, Task: k.task})
		}
		all[at].Rewards = append(all[at].Rewards, r.Rewards)
	}
	return all
}

// SameRewards reports whether two trials have the same rewards, in whatever
// order: equal numbers under the same names, or both none.
func SameRewards(a, b *reward.Rewards) bool { return rewardsKey(a) == rewardsKey(b) }

// rewardsKey is the same text for the same rewards, and for those alone.
func rewardsKey(r *reward.Rewards) string {
	if r == nil {
		return ""
	}
	var names []string
	for name := range r.All() {
		names = append(names, name)
	}
	slices.Sort(names)
	key := []byte{'{'}
	for _, name := range names {
		x, _ := r.Get(name)
		key = strconv.AppendQuote(key, name)
		key = appendNumberKey(append(key, ':'), x)
	}
	return string(key)
}

// appendNumberKey appends the same text for equal numbers, as Python compares
// them, and for nan.
func appendNumberKey(dst []byte, x value.Number) []byte {
	f, ok := x.(value.Float)
	if !ok {
		return x.(value.Int).Append(append(dst, 'i')) // of any size, and exact
	}
	whole := float64(f) == math.Trunc(float64(f))
	if n, err := value.Truncate(float64(f)); whole && err == nil {
		return n.Append(append(dst, 'i'))
	}
	return strconv.AppendFloat(append(dst, 'f'), float64(f), 'g', -1, 64) // fractions, infinities and nan
}
