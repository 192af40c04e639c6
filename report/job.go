package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/score"
)

var errNoJob = errors.New("it holds neither a " + scan.ResultFile + " nor trials")

// Classes of planned trials without a result that can be read. They stand for
// [jobdir.ClassPending] where the job's directory shows why a trial is pending.
const (
	ClassUnreadable jobdir.Class = "unreadable" // its result is malformed
	ClassUnfinished jobdir.Class = "unfinished" // it began and has no result
	ClassNotRun     jobdir.Class = "not_run"    // it has not begun
)

// Job is what a job's directory shows of it: what proctor job show --json prints.
type Job struct {
	Dir      string     `json:"dir"`
	State    State      `json:"state"`
	Started  *time.Time `json:"started_at"`  // null without a result
	Finished *time.Time `json:"finished_at"` // null while it is unfinished
	Planned  int        `json:"n_planned"`
	// Outcomes counts the planned trials by class. Every class is there but pending.
	Outcomes map[jobdir.Class]int `json:"outcomes"`
	// WithReward of the planned trials have a reward; Coverage is their share.
	WithReward int    `json:"n_with_reward"`
	Coverage   Number `json:"coverage"`
	// Groups have the statistics per agent, model and dataset, by key.
	Groups []GroupStatistics `json:"groups"`
	// Exceptions are those of the trials, the most frequent first.
	Exceptions []ExceptionSummary `json:"errors"`
	// Reasons are those of the trials that have one, in the order of their directories.
	Reasons []TrialReason  `json:"reasons"`
	Phases  []PhaseSummary `json:"phases"`
	Slowest []SlowPhase    `json:"slowest"`
	// Problems say which files cannot be read, and why.
	Problems []string `json:"problems"`
	// Unfinished are the directories of trials without a result.
	Unfinished []string `json:"unfinished"`
	Journal    *Journal `json:"journal"` // null without one
	records    []scan.FileRecord
	unreadable []error // one for each result that cannot be read
}

// ExceptionSummary is a type of exception with the directories of the trials that
// ended with it, or had a step that did.
type ExceptionSummary struct {
	Type       string       `json:"type"`
	Trials     []string     `json:"trials"`
	ReasonCode outcome.Code `json:"reason_code"` // that the type stands for
}

// TrialReason says why a trial did not complete.
type TrialReason struct {
	Trial     string `json:"trial"` // its directory, or name
	Exception string `json:"exception"`
	// InStep: it is a step's, the first one's, and the trial itself has none.
	InStep     bool         `json:"in_step,omitempty"`
	ReasonCode outcome.Code `json:"reason_code"`
}

// PhaseSummary sums up a kind of phase over all trials, in seconds.
type PhaseSummary struct {
	Phase   PhaseKind `json:"phase"`
	Trials  int       `json:"n_trials"`
	Total   float64   `json:"total_seconds"`
	Median  float64   `json:"median_seconds"`
	Longest float64   `json:"longest_seconds"`
}

// SlowPhase is one of the phases that took longest.
type SlowPhase struct {
	Trial   string  `json:"trial"`
	Phase   string  `json:"phase"` // with the step that it belongs to
	Seconds float64 `json:"seconds"`
}

// ReadJob reads a job's directory, finished or not. Times are shown in zone. It
// reads the result of every trial; an ended context ends that.
//
// The error is a [*NotFoundError] for a directory that is not a job's. Trials and
// results that cannot be read are problems of the job instead.
func ReadJob(ctx context.Context, dir string, zone *time.Location) (*Job, error) {
	scanned, err := scan.Dir(ctx, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NotFoundError{Path: dir, Kind: "job", Err: err}
	}
	if err != nil {
		return nil, err
	}
	j := &Job{
		Dir: dir, State: stateOf(dir), Outcomes: map[jobdir.Class]int{}, records: scanned.Records, unreadable: scanned.Errors,
		Problems: []string{}, Unfinished: orEmpty(scanned.Unfinished),
	}
	if len(j.records) == 0 && !isFile(filepath.Join(dir, scan.ResultFile)) {
		return nil, &NotFoundError{Path: dir, Kind: "job", Err: errNoJob}
	}
	for _, err := range j.unreadable {
		j.Problems = append(j.Problems, exception.PlainText(err))
	}
	j.readResult(zone)
	j.countOutcomes(len(j.unreadable))
	j.estimate()
	j.collectExceptions()
	j.timePhases()
	j.Journal = ReadJournal(dir)
	return j, nil
}

// readResult takes the plan and the times from the job's own result.
func (j *Job) readResult(zone *time.Location) {
	j.Planned = len(j.records) + len(j.Unfinished) + len(j.Problems)
	data, err := jobdir.ReadJobFile(j.Dir, scan.ResultFile)
	var result jobdir.Result
	if err == nil {
		result, err = jobdir.ParseResult(data)
	}
	if err != nil {
		j.Problems = append(j.Problems, fmt.Sprintf("%s: %s; the planned number of trials is taken to be the number found", scan.ResultFile, exception.PlainText(err)))
		return
	}
	j.Planned = max(result.NTotalTrials, len(j.records))
	started := result.StartedAt.In(zone)
	j.Started = &started
	if result.FinishedAt != nil {
		finished := result.FinishedAt.In(zone)
		j.Finished, j.State = &finished, Finished
	}
}

func (j *Job) countOutcomes(unreadable int) {
	for _, c := range jobdir.Classes() {
		if c != jobdir.ClassPending {
			j.Outcomes[c] = 0
		}
	}
	for i := range j.records {
		r := &j.records[i]
		j.Outcomes[r.Class()]++
		if r.Rewards != nil {
			j.WithReward++
		}
	}
	j.Outcomes[ClassUnreadable] = unreadable
	// Directories without a result can be more than the plan has place for.
	left := max(j.Planned-len(j.records)-unreadable, 0)
	j.Outcomes[ClassUnfinished] = min(left, len(j.Unfinished))
	j.Outcomes[ClassNotRun] = left - j.Outcomes[ClassUnfinished]
	j.Coverage = Number(math.NaN())
	if j.Planned > 0 {
		j.Coverage = Number(float64(j.WithReward) / float64(j.Planned))
	}
}

func (j *Job) estimate() {
	records := make([]jobdir.Record, len(j.records))
	for i := range j.records {
		records[i] = j.records[i].Record
	}
	statistics := score.NewStatistics(records, j.Planned)
	j.Groups = NewStatistics(&statistics).Groups
	slices.SortFunc(j.Groups, func(a, b GroupStatistics) int { return cmp.Compare(a.Group, b.Group) })
}

func (j *Job) collectExceptions() {
	byType := map[string][]string{}
	j.Reasons = []TrialReason{}
	for i := range j.records {
		r := &j.records[i]
		if typ := r.Exception(); typ != "" {
			byType[typ] = append(byType[typ], r.Dir)
			j.Reasons = append(j.Reasons, TrialReason{r.Dir, typ, r.ExceptionType == "", outcome.ReasonOfException(typ)})
		}
	}
	slices.SortFunc(j.Reasons, func(a, b TrialReason) int { return cmp.Compare(a.Trial, b.Trial) })
	j.Exceptions = []ExceptionSummary{}
	for typ, names := range byType {
		j.Exceptions = append(j.Exceptions, ExceptionSummary{typ, names, outcome.ReasonOfException(typ)})
	}
	slices.SortFunc(j.Exceptions, func(a, b ExceptionSummary) int {
		return cmp.Or(cmp.Compare(len(b.Trials), len(a.Trials)), cmp.Compare(a.Type, b.Type))
	})
}

// slowestPhases is how many are listed.
const slowestPhases = 5

func (j *Job) timePhases() {
	byPhase := map[PhaseKind][]float64{}
	var all []SlowPhase
	for _, r := range j.records {
		for _, p := range phasesOf(r.Phases, r.StartedAt) {
			byPhase[p.Kind] = append(byPhase[p.Kind], p.Seconds)
			all = append(all, SlowPhase{r.Dir, p.Name, p.Seconds})
		}
	}
	j.Phases = []PhaseSummary{}
	for _, kind := range phaseKinds {
		if times := byPhase[kind]; len(times) > 0 {
			slices.Sort(times)
			p := PhaseSummary{Phase: kind, Trials: len(times), Median: times[len(times)/2], Longest: times[len(times)-1]}
			for _, x := range times {
				p.Total += x
			}
			j.Phases = append(j.Phases, p)
		}
	}
	slices.SortStableFunc(all, func(a, b SlowPhase) int { return cmp.Compare(b.Seconds, a.Seconds) })
	j.Slowest = append([]SlowPhase{}, all[:min(len(all), slowestPhases)]...)
}

// Records are the results that were read, in the order of their directories.
func (j *Job) Records() []scan.FileRecord {
	records := slices.Clone(j.records)
	slices.SortFunc(records, func(a, b scan.FileRecord) int { return cmp.Compare(a.Dir, b.Dir) })
	return records
}
