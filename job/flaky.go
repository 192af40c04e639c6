package job

import (
	"slices"

	"github.com/proctor-run/proctor/reward"
)

// FlakyTask is a task whose attempts came to different rewards.
type FlakyTask struct {
	Group   string // the [Record.EvalsKey] of the attempts
	Task    string
	Rewards []*reward.Rewards // of the attempts in order; nil is none
}

// FlakyTasks lists the tasks whose attempts disagree, as [AgreementOf] counts
// them, within each group, in order of their first attempts.
func FlakyTasks(records []Record) []FlakyTask {
	type key struct{ group, dataset, task string }
	byTask := map[key]int{}
	var all []FlakyTask
	for i := range records {
		r := &records[i]
		if r.Class() == ClassCancelled {
			continue
		}
		k := key{r.EvalsKey(), r.Dataset(), r.TaskName}
		at, seen := byTask[k]
		if !seen {
			at = len(all)
			byTask[k] = at
			all = append(all, FlakyTask{Group: k.group, Task: k.task})
		}
		all[at].Rewards = append(all[at].Rewards, r.Rewards)
	}
	return slices.DeleteFunc(all, func(t FlakyTask) bool {
		return !slices.ContainsFunc(t.Rewards, func(x *reward.Rewards) bool { return !SameRewards(x, t.Rewards[0]) })
	})
}

// TotalUsage is what trials consumed together.
func TotalUsage(records []Record) Usage {
	var total Usage
	for _, r := range records {
		total.add(r.Usage)
	}
	return total
}
