package score

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
)

// A DifferentTasksError names tasks whose contents differ between two jobs.
type DifferentTasksError struct{ Tasks []string }

func (e *DifferentTasksError) Error() string {
	have := fmt.Sprintf("%d tasks have", len(e.Tasks))
	if len(e.Tasks) == 1 {
		have = "1 task has"
	}
	return fmt.Sprintf("comparing jobs: %s different checksums: %s", have, abbreviate(e.Tasks))
}

func abbreviate(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + ", …"
}

// A SeveralRewardsError is a trial of which it is not known which reward to compare.
type SeveralRewardsError struct {
	Trial string
	Names []string // of its rewards, sorted
}

func (e *SeveralRewardsError) Error() string {
	return fmt.Sprintf("comparing trial %q: it has several rewards and none is called %q: %s", e.Trial, "reward", strings.Join(e.Names, ", "))
}

// A NoSuchRewardError is the name of a reward that no trial of a job has, though its trials
// have rewards: each would count as 0.
type NoSuchRewardError struct {
	Reward string
	Names  []string // of the rewards that its trials have, sorted
}

func (e *NoSuchRewardError) Error() string {
	return fmt.Sprintf("comparing jobs: no trial of one of them has a reward %q; its rewards are: %s", e.Reward, strings.Join(e.Names, ", "))
}

// checkReward refuses a name that none of the trials' rewards has. A job without any
// rewards is compared: it failed in all of them.
func checkReward(records []jobdir.Record, group, name string) error {
	var names []string
	for i := range records {
		r := &records[i]
		if name == "" || group != "" && r.EvalsKey() != group || r.Rewards.Len() == 0 {
			continue
		}
		if _, ok := r.Rewards.Get(name); ok {
			return nil
		}
		names = append(names, rewardNames(r.Rewards)...)
	}
	if names == nil {
		return nil
	}
	slices.Sort(names)
	return &NoSuchRewardError{Reward: name, Names: slices.Compact(names)}
}

func rewardNames(r *reward.Rewards) []string {
	var names []string
	for name := range r.All() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ErrNothingInCommon marks two jobs without a common task.
var ErrNothingInCommon = errors.New("comparing jobs: they have no task in common")

// A NothingInCommonError is ErrNothingInCommon with the tasks of both jobs, sorted, as
// dataset and task name.
type NothingInCommonError struct{ A, B []string }

func (e *NothingInCommonError) Error() string {
	return fmt.Sprintf("%v: A has %s; B has %s", ErrNothingInCommon, some(e.A), some(e.B))
}

// Unwrap makes errors.Is find ErrNothingInCommon.
func (e *NothingInCommonError) Unwrap() error { return ErrNothingInCommon }

// Namesakes are the first task of A whose name without the dataset a task of B has,
// and that task; empty where there is none.
func (e *NothingInCommonError) Namesakes() (a, b string) {
	of := map[string]string{}
	for _, task := range slices.Backward(e.B) {
		of[bareName(task)] = task
	}
	for _, task := range e.A {
		if other, ok := of[bareName(task)]; ok {
			return task, other
		}
	}
	return "", ""
}

// bareName is the name of a task without its dataset and without its organisation.
func bareName(task string) string { return task[strings.LastIndexByte(task, '/')+1:] }

// some names the first of a job's tasks.
func some(tasks []string) string {
	const most = 2
	switch {
	case len(tasks) == 0:
		return "none"
	case len(tasks) <= most:
		return strings.Join(tasks, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(tasks[:most], ", "), len(tasks)-most)
}
