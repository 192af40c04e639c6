package report

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/score"
)

// Comparison compares job B with job A on the tasks of both: what proctor compare
// --json prints. A difference above 0 is in favour of B.
type Comparison struct {
	A     string `json:"a"` // the directories
	B     string `json:"b"`
	MeanA Number `json:"mean_a"` // over the tasks of both
	MeanB Number `json:"mean_b"`
	// Difference is MeanB - MeanA. Low and High hold it with a confidence, a fraction
	// of 1; they are null with less than two tasks.
	Difference Number  `json:"difference"`
	Low        Number  `json:"low"`
	High       Number  `json:"high"`
	Confidence float64 `json:"confidence"`
	// Wins, losses and ties are those of B by task; SignP is the probability that
	// chance makes them as uneven.
	Wins    int        `json:"wins"`
	Losses  int        `json:"losses"`
	Ties    int        `json:"ties"`
	SignP   Number     `json:"sign_p"`
	FlakesA Flakes     `json:"flakes_a"`
	FlakesB Flakes     `json:"flakes_b"`
	Tasks   []TaskPair `json:"tasks"`
	OnlyA   []string   `json:"only_a"` // tasks that the other job does not have
	OnlyB   []string   `json:"only_b"`
}

// TaskPair is a task of both jobs, with the mean of its attempts in each.
type TaskPair struct {
	Task             string `json:"task"`
	A                Number `json:"a"`
	B                Number `json:"b"`
	TrialsA          int    `json:"n_trials_a"`
	TrialsB          int    `json:"n_trials_b"`
	DifferentContent bool   `json:"different_content"`
}

// Flakes counts the tasks with several attempts, and those of them whose attempts
// differ; the rate is null without any.
type Flakes struct {
	Flaky    int    `json:"n_flaky"`
	Repeated int    `json:"n_repeated"`
	Rate     Number `json:"rate"`
}

// NoGroupError is the error for a group that a job does not have.
type NoGroupError struct {
	Dir, Group string
	Groups     []string // those that it has, sorted
}

// Error names the job and the group.
func (e *NoGroupError) Error() string { return fmt.Sprintf("%q has no group %q", e.Dir, e.Group) }

// CompareError is the error for two jobs that cannot be compared: it wraps
// [*score.NothingInCommonError], a [*score.DifferentTasksError], a
// [*score.SeveralRewardsError] or a [*score.NoSuchRewardError].
type CompareError struct{ Err error }

// Error is the text of the reason.
func (e *CompareError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *CompareError) Unwrap() error { return e.Err }

// Compare reads two job directories and compares them task by task.
//
// The error is a [*NotFoundError] for a directory that is no job's, a
// [*NoGroupError], a [*CompareError], or says which results of trials cannot be
// read.
func Compare(ctx context.Context, dirA, dirB string, opts score.CompareOptions) (*Comparison, error) {
	a, err := recordsIn(ctx, dirA, opts.GroupA)
	if err != nil {
		return nil, err
	}
	b, err := recordsIn(ctx, dirB, opts.GroupB)
	if err != nil {
		return nil, err
	}
	return compareRecords(dirA, dirB, a, b, opts)
}

// CompareJobs is [Compare] for jobs that were read with [ReadJob].
func CompareJobs(a, b *Job, opts score.CompareOptions) (*Comparison, error) {
	inA, err := recordsOf(a.Dir, a.records, a.unreadable, opts.GroupA)
	if err != nil {
		return nil, err
	}
	inB, err := recordsOf(b.Dir, b.records, b.unreadable, opts.GroupB)
	if err != nil {
		return nil, err
	}
	return compareRecords(a.Dir, b.Dir, inA, inB, opts)
}

func compareRecords(dirA, dirB string, a, b []jobdir.Record, opts score.CompareOptions) (*Comparison, error) {
	c, err := score.Compare(a, b, opts)
	if err != nil {
		return nil, &CompareError{err}
	}
	return newComparison(dirA, dirB, c), nil
}

var errNoTrials = errors.New("it holds no trials")

// recordsIn reads the trials of a job.
func recordsIn(ctx context.Context, dir, group string) ([]jobdir.Record, error) {
	scanned, err := scan.Dir(ctx, dir)
	if err != nil && ctx.Err() == nil && !isDirectory(dir) {
		return nil, &NotFoundError{Path: dir, Kind: "job", Err: err}
	}
	if err != nil {
		return nil, err
	}
	return recordsOf(dir, scanned.Records, scanned.Errors, group)
}

// recordsOf are the trials of a job, all of which could be read, and at least one of which
// is in the group.
func recordsOf(dir string, trials []scan.FileRecord, unreadable []error, group string) ([]jobdir.Record, error) {
	if err := errors.Join(unreadable...); err != nil {
		return nil, err
	}
	if len(trials) == 0 {
		return nil, &NotFoundError{Path: dir, Kind: "job", Err: errNoTrials}
	}
	records := make([]jobdir.Record, len(trials))
	groups := map[string]bool{}
	for i := range trials {
		records[i] = trials[i].Record
		groups[records[i].EvalsKey()] = true
	}
	if group != "" && !groups[group] {
		return nil, &NoGroupError{Dir: dir, Group: group, Groups: slices.Sorted(maps.Keys(groups))}
	}
	return records, nil
}

func newComparison(dirA, dirB string, c *score.Comparison) *Comparison {
	out := &Comparison{
		A: dirA, B: dirB, MeanA: Number(c.MeanA), MeanB: Number(c.MeanB),
		Difference: Number(c.Difference), Low: Number(c.Low), High: Number(c.High), Confidence: c.Confidence,
		Wins: c.Wins, Losses: c.Losses, Ties: c.Ties, SignP: Number(c.SignP),
		FlakesA: newFlakes(c.AgreementA), FlakesB: newFlakes(c.AgreementB),
		Tasks: make([]TaskPair, len(c.Tasks)), OnlyA: orEmpty(c.OnlyA), OnlyB: orEmpty(c.OnlyB),
	}
	for i, p := range c.Tasks {
		out.Tasks[i] = TaskPair{p.Task, Number(p.A), Number(p.B), p.TrialsA, p.TrialsB, p.DifferentContent}
	}
	return out
}

func newFlakes(a score.Agreement) Flakes {
	return Flakes{a.Flaky(), a.Repeated, Number(float64(a.Flaky()) / float64(a.Repeated))}
}
