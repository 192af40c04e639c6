package job

import (
	"fmt"
	"slices"
)

// maxChanges is how many differences between two locks are told.
const maxChanges = 10

// changes says for people what keeps a job from going on with another lock:
// contents of tasks, skills and files, by their names.
func (l Lock) changes(now Lock) []string {
	var list []string
	if l.NConcurrentTrials != now.NConcurrentTrials {
		list = append(list, fmt.Sprintf("n_concurrent_trials was %d and is %d", l.NConcurrentTrials, now.NConcurrentTrials))
	}
	if len(l.Trials) != len(now.Trials) {
		list = append(list, fmt.Sprintf("%d trials were planned, and %d are", len(l.Trials), len(now.Trials)))
	}
	old := contents(l)
	for name, digest := range contents(now) {
		if before, ok := old[name]; ok && before != digest {
			list = append(list, name+" has changed")
		}
	}
	slices.Sort(list)
	if len(list) > maxChanges {
		list = append(list[:maxChanges], fmt.Sprintf("and %d more", len(list)-maxChanges))
	}
	return list
}

// contents are the digests that a lock holds, by what they are of.
func contents(l Lock) map[string]string {
	all := map[string]string{}
	for _, t := range l.Trials {
		all[fmt.Sprintf("task %q", t.Task.Name)] = t.Task.Digest
		for _, s := range t.Skills {
			all[fmt.Sprintf("skill %q", s.Name)] = s.Digest
		}
		for _, f := range slices.Concat(t.ExtraInstructions, t.ExtraDockerCompose) {
			all[fmt.Sprintf("file %q", f.Path)] = f.Digest
		}
	}
	return all
}
