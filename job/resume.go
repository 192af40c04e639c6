package job

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
)

// ErrForeignTrial is the error of a job directory that holds a trial which the
// plan does not have.
const ErrForeignTrial jobdir.RuleError = "Existing trial config does not match planned job config."

// match is a plan reconciled with what a job directory holds.
type match struct {
	// Trials is the plan in its order, where trials that exist already stand
	// with their own configuration, and so with their old name.
	Trials []jobdir.TrialConfig
	// Remaining indexes the trials that are still to run, in order.
	Remaining []int
	// Unmatched indexes existing trials that the plan has no place for.
	Unmatched []int
}

// matchExisting gives each planned trial the first existing one that asks for
// the same and is not given away yet (Harbor job format, section 6.1, step 4).
// The error is [ErrForeignTrial] when some existing trial is left over; the
// match is complete even then. The plan becomes that of the match.
func matchExisting(planned, existing []jobdir.TrialConfig, lookup harbor.Lookup) (match, error) {
	if len(existing) == 0 {
		return match{Trials: planned, Remaining: indexes(len(planned))}, nil
	}
	free := make(map[[sha256.Size]byte][]int, len(existing))
	for i, c := range existing {
		key := sha256.Sum256([]byte(c.Identity(lookup)))
		free[key] = append(free[key], i)
	}
	m := match{Trials: planned}
	used := make([]bool, len(existing))
	for i, c := range planned {
		key := sha256.Sum256([]byte(c.Identity(lookup)))
		if len(free[key]) == 0 {
			m.Remaining = append(m.Remaining, i)
			continue
		}
		first := free[key][0]
		free[key] = free[key][1:]
		used[first] = true
		m.Trials[i] = existing[first]
	}
	for i, taken := range used {
		if !taken {
			m.Unmatched = append(m.Unmatched, i)
		}
	}
	if len(m.Unmatched) > 0 {
		return m, ErrForeignTrial
	}
	return m, nil
}

// indexes lists the numbers below n.
func indexes(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// foreign says what is wrong with trials that the plan has no place for.
func foreign(m match, planned, existing []jobdir.TrialConfig, lookup harbor.Lookup) error {
	var list []jobdir.Change
	for _, i := range m.Unmatched {
		old := existing[i]
		path := fmt.Sprintf("trial %q", old.TrialName)
		at := slices.IndexFunc(m.Remaining, func(k int) bool { return planned[k].Task.BaseName() == old.Task.BaseName() })
		if at < 0 {
			list = append(list, jobdir.Change{Path: path, Old: "task " + old.Task.BaseName(), Results: true})
			continue
		}
		now := planned[m.Remaining[at]]
		now.TrialName, now.JobID = old.TrialName, old.JobID
		list = append(list, jobdir.TrialChanges(path, old, now, lookup)...)
	}
	return &jobdir.ChangedError{Err: ErrForeignTrial, Changes: list}
}
