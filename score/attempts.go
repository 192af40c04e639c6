package score

import (
	"github.com/proctor-run/proctor/reward"
)

// attempts counts, per task of a group, how many trials there were and how
// many solved it, for pass@k (Harbor job format, section 5.5).
type attempts struct {
	// off is set by the first trial whose rewards are not exactly one zero or
	// one: such a group has no pass@k.
	off   bool
	tasks []reward.Attempts // in first-seen order
	index map[string]int    // position of a task
}

func (a *attempts) add(task string, rewards *reward.Rewards) {
	if a.off {
		return
	}
	solved, ok := reward.Solved(rewards)
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
		a.tasks = append(a.tasks, reward.Attempts{})
	}
	a.tasks[i].N++
	a.tasks[i].C += solved
}

func (a *attempts) passAtK() []reward.PassAtK {
	if a.off {
		return nil
	}
	return reward.PassAtKOf(a.tasks)
}
