package report

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/value"
)

// Outcome is the outcome of a job, and the trials that it comes from: what proctor
// outcome --explain tells. [Outcome.Document] has what the command prints with --json;
// the result line of [outcome.Outcome.Line] is what consumers of jobs read.
//
// The trials are those that the result file itself lists. There are none when it
// cannot be read as a whole, which an outcome does not need.
type Outcome struct {
	outcome.Explanation
	// ErroredTrials are those whose exceptions make the job a failure.
	ErroredTrials []ErroredTrial
	// Unwritable are the rewards that JSON has no number for: they are why a metric
	// is null.
	Unwritable []UnwritableReward
	// Sources has the trials behind each of the explanation's samples, in order.
	Sources []SampleSource
	// Result is the job's result; nil where it cannot be read as a whole.
	Result *jobdir.Result
	// Unfinished says why the job is not finished, by its result and its journal; empty
	// where it is, and where neither can be read.
	Unfinished []string
}

// Finished is how many trials have finished: those that were cancelled run again.
func (o *Outcome) Finished() value.Int {
	if o.Result == nil {
		return o.Completed
	}
	return o.Completed.Add(value.NewInt(-int64(o.Result.Stats.NCancelledTrials)))
}

// ErroredTrial is a trial that ended with an exception.
type ErroredTrial struct {
	Trial     string
	Exception string       // its type
	Reason    outcome.Code // that the type stands for
}

// UnwritableReward is a reward that is nan or infinite in some trials.
type UnwritableReward struct {
	Reward string // its name
	Value  string // as Python shows it
	Trials []string
}

// SampleSource is what a number of the job's metrics was computed from. Without a
// group of that name in the result it is not known.
type SampleSource struct {
	Known bool
	// Trial has the value, where a metric max or min chose it among single rewards;
	// else it is "".
	Trial string
	// Rewarded trials have rewards; Unscored ended with an exception, have none and
	// count as 0.
	Rewarded int
	Unscored []string
}

// ReadOutcome reads the result file of a job, which may be missing or malformed:
// that is an outcome too.
func ReadOutcome(path string) *Outcome {
	o := &Outcome{Explanation: outcome.Read(path)}
	result := parsedResult(path)
	o.Result = result
	if result == nil {
		o.Sources = make([]SampleSource, len(o.Samples))
		return o
	}
	for _, group := range result.Stats.Evals.All() {
		for typ, names := range group.ExceptionStats.All() {
			for _, name := range names {
				o.ErroredTrials = append(o.ErroredTrials, ErroredTrial{name, typ, outcome.ReasonOfException(typ)})
			}
		}
		o.Unwritable = append(o.Unwritable, unwritable(group)...)
	}
	for _, s := range o.Samples {
		o.Sources = append(o.Sources, sourceOf(result, s))
	}
	if why := WhyUnfinished(result); why != "" {
		o.Unfinished = append(o.Unfinished, why)
	}
	if why := unfinishedRun(path); why != "" {
		o.Unfinished = append(o.Unfinished, why)
	}
	return o
}

// WhyUnfinished says why the result of a job is not its last one; "" where it is.
func WhyUnfinished(r *jobdir.Result) string {
	var parts []string
	if r.FinishedAt == nil {
		parts = append(parts, "its result has no finished_at")
	}
	if n := r.Stats.NRunningTrials; n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s running", n, console.Count(r.NTotalTrials, "trial")))
	}
	if n := r.Stats.NPendingTrials; n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s pending", n, console.Count(r.NTotalTrials, "trial")))
	}
	if n := r.Stats.NCancelledTrials; n > 0 && r.FinishedAt == nil {
		parts = append(parts, fmt.Sprintf("%d of %s cancelled", n, console.Count(r.NTotalTrials, "trial")))
	}
	return strings.Join(parts, ", ")
}

// unfinishedRun says how the last run of a job ended, by the journal beside its result;
// "" where it finished, and without a journal.
func unfinishedRun(path string) string {
	if filepath.Base(path) != scan.ResultFile {
		return ""
	}
	j := ReadJournal(filepath.Dir(path))
	if j == nil || len(j.Runs) == 0 {
		return ""
	}
	switch j.Runs[len(j.Runs)-1].How {
	case RunFinished:
		return ""
	case RunRunning:
		return "its journal says that it is running"
	case RunKilled:
		return "its journal does not say how its last run ended"
	case RunInterrupted:
		return "its journal says that its last run was interrupted"
	default:
		return "its journal says that its last run failed"
	}
}

// parsedResult is nil where the file cannot be read as a whole. What is no regular
// file is not opened: reading a pipe could wait for ever.
func parsedResult(path string) *jobdir.Result {
	data, err := jobdir.ReadJobFile(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return nil
	}
	r, err := jobdir.ParseResult(data)
	if err != nil {
		return nil
	}
	return &r
}

func unwritable(group *jobdir.Eval) []UnwritableReward {
	var list []UnwritableReward
	for _, name := range group.RewardStats.Names() {
		for _, entry := range group.RewardStats.Entries(name) {
			if text := value.Repr(entry.Value); text == "nan" || text == "inf" || text == "-inf" {
				list = append(list, UnwritableReward{name, text, entry.Trials})
			}
		}
	}
	return list
}

func sourceOf(result *jobdir.Result, s outcome.Sample) SampleSource {
	group, ok := result.Stats.Evals.Get(s.Group)
	if !ok {
		return SampleSource{}
	}
	return SampleSource{Known: true, Trial: firstWith(group, s), Rewarded: group.NTrials, Unscored: unscoredTrials(group)}
}

// unscoredTrials are the trials that errored and have no rewards.
func unscoredTrials(group *jobdir.Eval) []string {
	scored := map[string]bool{}
	for _, name := range group.RewardStats.Names() {
		for _, entry := range group.RewardStats.Entries(name) {
			for _, trial := range entry.Trials {
				scored[trial] = true
			}
		}
	}
	var unscored []string
	for _, names := range group.ExceptionStats.All() {
		for _, name := range names {
			if !scored[name] {
				unscored = append(unscored, name)
			}
		}
	}
	return unscored
}

// firstWith finds the trial whose reward a metric of type max or min chose.
func firstWith(group *jobdir.Eval, s outcome.Sample) string {
	names := group.RewardStats.Names()
	if s.Key != string(jobdir.MetricMax) && s.Key != string(jobdir.MetricMin) || len(names) != 1 {
		return ""
	}
	for _, entry := range group.RewardStats.Entries(names[0]) {
		c, ordered := value.Compare(entry.Value, value.Float(s.Value))
		if ordered && c == 0 && len(entry.Trials) > 0 {
			return entry.Trials[0]
		}
	}
	return ""
}
