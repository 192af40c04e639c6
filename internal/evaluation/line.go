package evaluation

import (
	"errors"
	"fmt"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/ownrunner"
	"github.com/proctor-run/proctor/report"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/value"
)

// Line returns the result line of an evaluation all of whose trials have records, and
// what is to be said of those that failed. The score under the policy stands in the line
// besides, or instead of the mean. (Outcome mapping, sections 4, 10 and 11.5.)
//
// Errors are those of a mean that is no score, of a policy that the trials have no score
// under, and of a trial without a record.
func (e *Evaluation) Line(instead bool) (line string, failed []outcome.Diagnostic, err error) {
	if n := e.Missing(); n > 0 {
		return "", nil, fmt.Errorf("%d of %d trials have no record", n, len(e.Plan()))
	}
	trials := e.Trials()
	summary, err := ownrunner.Summary(trials)
	if err != nil {
		return "", nil, err
	}
	further, err := e.underPolicy(&summary, trials, instead)
	if err != nil {
		return "", nil, err
	}
	if failed, err = outcome.Diagnostics(e.diagnostics(trials), outcome.MaxDiagnostics, outcome.MaxDiagnosticChars); err != nil {
		return "", nil, err
	}
	payload := summary.Object()
	if further != nil {
		payload.Set("policy_score", further)
	}
	if len(failed) > 0 {
		list := value.List{}
		for _, d := range failed {
			list = append(list, d.Object())
		}
		payload.Set("trial_diagnostics", list)
	}
	line, err = outcome.Emit(payload)
	return line, failed, err
}

// underPolicy scores the trials under the policy; nil for none. With instead the summary
// has that score.
func (e *Evaluation) underPolicy(summary *outcome.Outcome, trials []ownrunner.Trial, instead bool) (value.Value, error) {
	if e.Policy == nil {
		return nil, nil
	}
	records := make([]jobdir.Record, len(trials))
	for i, t := range trials {
		records[i] = jobdir.Record{TaskName: t.TaskName, TrialName: t.TrialName, AgentName: t.AgentName, Rewards: t.Rewards}
	}
	s, err := e.Policy.Of(records)
	if err != nil {
		return nil, fmt.Errorf("scoring under the policy: %w", err)
	}
	if instead {
		summary.Score = s.Score
		if summary.Resolved, err = value.RoundHalfEven(s.Score * float64(len(trials))); err != nil {
			return nil, fmt.Errorf("scoring under the policy: %w", err)
		}
	}
	return report.NewPolicyScore(&s).Value()
}

func (e *Evaluation) diagnostics(trials []ownrunner.Trial) []outcome.Diagnostic {
	list := make([]outcome.Diagnostic, len(trials))
	for i, t := range trials {
		list[i] = outcome.Diagnostic{
			TaskName: t.TaskName, TrialName: t.TrialName, Status: string(t.Status), Errored: t.Errored, Reason: t.Reason,
		}
		if t.Errored || t.Status == outcome.Failed {
			list[i].ErrorText = e.errorText(t.TrialName)
		}
	}
	return list
}

// Stage is where an evaluation failed as a whole, for [ownrunner.FailureMarker].
type Stage string

// The stages that this runner has.
const (
	Preflight Stage = "preflight_tasks"
	Job       Stage = "job"
	Emit      Stage = "emit"
	CLI       Stage = "cli"
)

// Failure is why an evaluation has no result.
type Failure struct {
	Stage Stage
	Err   error
	// Tasks that were asked for.
	Tasks int
}

// ReasonOf is the code that the error of a job as a whole has, else the one that says
// nothing more.
func ReasonOf(err error) outcome.Code {
	if errors.Is(err, sandbox.ErrUnavailable) {
		return outcome.BrokerConnectionFailed
	}
	if code := outcome.ReasonOf(err); code != outcome.TrialFailed {
		return code
	}
	return outcome.GenericFailed
}

func (f Failure) class() string {
	if class := exception.TypeOf(f.Err); class != "" {
		return class
	}
	return "RuntimeError"
}

// Line returns the result line of an evaluation that could not be done (outcome mapping,
// sections 4.3 and 12). clean takes secrets out of what is said of the error.
func (f Failure) Line(clean func(string) string) (line, marker string) {
	o := outcome.Outcome{Status: outcome.Failed, Total: value.NewInt(int64(f.Tasks)), Reason: ReasonOf(f.Err)}
	payload := o.Object()
	detail := clean(f.Err.Error())
	if o.Reason == outcome.GenericFailed {
		stage, class, detail := ownrunner.FailureFields(string(f.Stage), f.class(), detail)
		payload.Append("failure_stage", value.Str(stage))
		payload.Append("failure_class", value.Str(class))
		payload.Append("failure_detail", value.Str(detail))
	}
	line, err := outcome.Emit(payload)
	if err != nil {
		panic(err) // the fields are this function's own
	}
	return line, ownrunner.FailureMarker(string(f.Stage), f.class(), detail)
}
