package job

import (
	"slices"

	"github.com/proctor-run/proctor/internal/pyvalue"
	"github.com/proctor-run/proctor/reward"
)

// PassAtK is the chance that at least one of K attempts at a task solves it,
// averaged over the tasks of a group.
type PassAtK struct {
	K     int
	Value float64
}

// attempts counts, per task of a group, how many trials there were and how
// many solved it, for pass@k (Harbor job format, section 5.5).
type attempts struct {
	// off is set by the first trial whose rewards are not exactly one zero or
	// one: such a group has no pass@k.
	off   bool
	tasks []attemptCount // in first-seen order
	index map[string]int // position of a task
}

type attemptCount struct{ trials, solved int }

func (a *attempts) add(task string, rewards *reward.Rewards) {
	if a.off {
		return
	}
	solved, ok := solvedOf(rewards)
	if !ok {
		*a = attempts{off: true}
		return
	}
	i, ok := a.index[task]
	if !ok {
		if a.index == nil {
			a.index = map[string]int{}
		}
		i = len(a.tasks)
		a.index[task] = i
		a.tasks = append(a.tasks, attemptCount{})
	}
	a.tasks[i].trials++
	a.tasks[i].solved += solved
}

// solvedOf returns 1 or 0 for a trial that counts, and whether it does.
func solvedOf(rewards *reward.Rewards) (int, bool) {
	if rewards == nil {
		return 0, true
	}
	if rewards.Len() != 1 {
		return 0, false
	}
	for _, x := range rewards.All() {
		for _, want := range [...]int{0, 1} {
			if c, ordered := pyvalue.Compare(x, pyvalue.NewInt(int64(want))); ordered && c == 0 {
				return want, true
			}
		}
	}
	return 0, false
}

func (a *attempts) passAtK() []PassAtK {
	if a.off || len(a.tasks) == 0 {
		return nil
	}
	fewest := a.tasks[0].trials
	for _, t := range a.tasks {
		fewest = min(fewest, t.trials)
	}
	var out []PassAtK
	for _, k := range attemptSizes(fewest) {
		var sum pyvalue.Summation
		for _, t := range a.tasks {
			_ = sum.Add(pyvalue.Float(t.passAtK(k))) // floats never overflow here
		}
		total, _ := pyvalue.ToFloat(sum.Total())
		out = append(out, PassAtK{K: k, Value: total / float64(len(a.tasks))})
	}
	return out
}

// attemptSizes lists the k up to a limit: powers of two and multiples of five.
func attemptSizes(limit int) []int {
	var ks []int
	for k := 2; k <= limit; k *= 2 {
		ks = append(ks, k)
	}
	for k := 5; k <= limit; k += 5 {
		ks = append(ks, k)
	}
	slices.Sort(ks)
	return slices.Compact(ks)
}

// passAtK is one task's estimate. Each quotient and each product is rounded
// once, from the left.
func (t attemptCount) passAtK(k int) float64 {
	failed := t.trials - t.solved
	if failed < k {
		return 1
	}
	none := 1.0
	for i := range k {
		none = float64(none * (float64(failed-i) / float64(t.trials-i)))
	}
	return 1 - none
}
