package evaluation

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/ownrunner"
)

// Adopt gives the trials of a prepared job the names of the plan, and leaves out those
// that have a record.
func (e *Evaluation) Adopt(p *job.Prepared) error {
	if err := e.name(p); err != nil {
		return err
	}
	p.Remaining = slices.DeleteFunc(p.Remaining, func(i int) bool { return e.Recorded(p.Trials[i].TrialName) })
	return nil
}

// name names the trials that have no directory yet; those that have one keep the name
// that it has, which must be one of the plan.
func (e *Evaluation) name(p *job.Prepared) error {
	free := make(map[string][]string, len(e.Tasks)) // names by task directory
	for _, t := range e.Tasks {
		for attempt := range e.Lock.Attempts {
			free[t.Dir] = append(free[t.Dir], ownrunner.TrialName(t.Name, attempt))
		}
	}
	remaining := indexes(p.Remaining)
	var unnamed []int
	for i, t := range p.Trials {
		if t.Task.Path == nil {
			return fmt.Errorf("a trial of the job has no task directory: %s", t.TrialName)
		}
		_, rerun := p.Earlier[i]
		if remaining[i] && !rerun {
			unnamed = append(unnamed, i)
			continue
		}
		at := slices.Index(free[*t.Task.Path], t.TrialName)
		if at < 0 {
			return fmt.Errorf("%s: trial %q is none of the plan", e.JobDir(), t.TrialName)
		}
		free[*t.Task.Path] = slices.Delete(free[*t.Task.Path], at, at+1)
	}
	for _, i := range unnamed {
		names := free[*p.Trials[i].Task.Path]
		if len(names) == 0 {
			return fmt.Errorf("%s: there are more trials of %q than planned", e.JobDir(), *p.Trials[i].Task.Path)
		}
		p.Trials[i].TrialName, free[*p.Trials[i].Task.Path] = names[0], names[1:]
	}
	return nil
}

// CatchUp records the trials that ended in an earlier run and have no record, because the
// run was ended before it was written.
func (e *Evaluation) CatchUp(p *job.Prepared) error {
	remaining := indexes(p.Remaining)
	var errs []error
	for i, t := range p.Trials {
		if e.Recorded(t.TrialName) || remaining[i] {
			continue
		}
		data, err := jobdir.ReadTrialFile(e.JobDir(), filepath.Join(t.TrialName, scan.ResultFile))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var res jobdir.TrialResult
		if err == nil {
			res, err = jobdir.ParseTrialResult(data)
		}
		if err == nil {
			_, err = e.Record(&res)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func indexes(list []int) map[int]bool {
	set := make(map[int]bool, len(list))
	for _, i := range list {
		set[i] = true
	}
	return set
}
