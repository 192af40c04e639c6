package score

import (
	"slices"

	"github.com/proctor-run/proctor/jobdir"
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
func FlakyTasks(records []jobdir.Record) []FlakyTask {
	type key struct{ group, dataset, task string }
	byTask := map[key]int{}
	var all []FlakyTask
	for i := range records {
		r := &records[i]
		if r.Class() == jobdir.ClassCancelled {
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
func TotalUsage(records []jobdir.Record) jobdir.Usage {
	var total jobdir.Usage
	for _, r := range records {
		total.Add(r.Usage)
	}
	return total
}
