package report

import (
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/value"
)

// OutcomeDocument is what proctor outcome --json prints: the result line and its fields,
// how they came about, and why trials did not complete.
type OutcomeDocument struct {
	// Line is the whole result line, without a line end. The five fields are those that
	// it has.
	Line       string         `json:"line"`
	Status     outcome.Status `json:"status"`
	Score      Number         `json:"score"`
	Resolved   value.Int      `json:"resolved"`
	Total      value.Int      `json:"total"`
	ReasonCode *outcome.Code  `json:"reason_code"`
	// PolicyScore is the score under a policy, where one was asked for and there is one.
	PolicyScore *PolicyScore `json:"policy_score,omitempty"`

	// Problem says why the result is missing or malformed; null where it is neither.
	Problem *string `json:"problem"`
	// FinishedAt is that of the result, as it stands there; null without one.
	FinishedAt *string `json:"finished_at"`
	// Unfinished says why the job is not finished; empty where it is.
	Unfinished []string `json:"unfinished"`
	// What the fields were made of: n_total_trials and the counters of stats. NPending and
	// NRunning are 0 where the result cannot be read as a whole.
	NTotal     value.Int `json:"n_total_trials"`
	NCompleted value.Int `json:"n_completed_trials"`
	NErrored   value.Int `json:"n_errored_trials"`
	NPending   int       `json:"n_pending_trials"`
	NRunning   int       `json:"n_running_trials"`
	// NFinished are the completed trials that were not cancelled.
	NFinished value.Int `json:"n_finished_trials"`
	// NExpected is the number of finished trials that was asked for.
	NExpected *int            `json:"n_expected_trials,omitempty"`
	Samples   []OutcomeSample `json:"samples"`
	// Trials are those whose exceptions make the job a failure.
	Trials []TrialReason `json:"trials"`
	// Consumer is what a consumer makes of the line, after exit status 0.
	Consumer ConsumedOutcome `json:"consumer"`
}

// OutcomeSample is one number of the job's metrics, whose mean is the score.
type OutcomeSample struct {
	Group  string   `json:"group"`
	Metric int      `json:"metric"` // its index in the group's metrics
	Key    string   `json:"key"`
	Value  Number   `json:"value"`
	Hidden []string `json:"hidden"` // other keys of the metric, which do not count
}

// ConsumedOutcome is what a consumer makes of a result line.
type ConsumedOutcome struct {
	Status     outcome.Status `json:"status"`
	Score      Number         `json:"score"`
	ReasonCode *outcome.Code  `json:"reason_code"`
}

// Document is the outcome for programs. shown is what the line has, which may have the
// score of a policy.
func (o *Outcome) Document(line string, shown outcome.Outcome) *OutcomeDocument {
	d := &OutcomeDocument{
		Line: line, Status: shown.Status, Score: Number(shown.Score), Resolved: shown.Resolved, Total: shown.Total,
		ReasonCode: codeOrNull(shown.Reason), Unfinished: orEmpty(o.Unfinished),
		NTotal: o.Counted, NCompleted: o.Completed, NErrored: o.Errored, NFinished: o.Finished(),
		Samples: []OutcomeSample{}, Trials: []TrialReason{},
	}
	if o.Err != nil {
		d.Problem = new(o.Err.Error())
	}
	if r := o.Result; r != nil {
		d.NPending, d.NRunning = r.Stats.NPendingTrials, r.Stats.NRunningTrials
		if r.FinishedAt != nil {
			d.FinishedAt = new(r.FinishedAt.String())
		}
	}
	for _, s := range o.Samples {
		d.Samples = append(d.Samples, OutcomeSample{s.Group, s.Metric, s.Key, Number(s.Value), orEmpty(s.Hidden)})
	}
	for _, t := range o.ErroredTrials {
		d.Trials = append(d.Trials, TrialReason{Trial: t.Trial, Exception: t.Exception, ReasonCode: t.Reason})
	}
	// The error is that of numbers that Python does not read: the line is malformed then.
	n, _ := outcome.Run{Stdout: line}.Normalize()
	d.Consumer = ConsumedOutcome{n.Status, Number(n.Score), codeOrNull(n.Reason)}
	return d
}

func codeOrNull(c outcome.Code) *outcome.Code {
	if c == "" {
		return nil
	}
	return &c
}
