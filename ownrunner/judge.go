package ownrunner

import (
	"fmt"
	"strings"

	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/value"
)

// Evidence is what a consumer has when the process of a runner has ended that
// attempted one task.
type Evidence struct {
	Run    outcome.Run
	Stderr string
	// Task that was attempted; it names trials whose records name none.
	Task string
	// Trials are the records of the job directory, see [outcome.ReadTrials]. NoJobDir:
	// there should have been one, and it is gone.
	Trials   []outcome.TrialRecord
	NoJobDir bool
	// Attempt counts from 1; Expected is the planned number of trials, nil for any.
	Attempt     int
	Expected    *int
	Aggregation outcome.Aggregation
}

// Judgement is what a consumer stores of an attempt.
type Judgement struct {
	Host    outcome.Normalized // what the process gave
	Stderr  string             // with the reason as its last line
	Attempt outcome.Finalized
	Number  int // of the attempt
	// Why says in a sentence what decided.
	Why string
	// Doubt is the exception of the few result lines on which the reference gives up;
	// here they count as malformed.
	Doubt error
}

// Judge decides an attempt (outcome mapping, sections 5 to 7). Errors are those of
// [outcome.Aggregation.Of], and an attempt number below 1.
func (e Evidence) Judge() (Judgement, error) {
	if e.Attempt < 1 {
		return Judgement{}, fmt.Errorf("attempt %d: attempts count from 1", e.Attempt)
	}
	j := Judgement{Number: e.Attempt}
	j.Host, j.Doubt = e.Run.Normalize()
	j.Stderr = outcome.AnnotateStderr(e.Stderr, j.Host.Reason)
	if e.NoJobDir {
		j.lose(e)
		return j, nil
	}
	var err error
	j.Attempt, err = outcome.Attempt{
		Task: e.Task, Trials: e.Trials, Host: j.Host, Number: e.Attempt, Aggregation: e.Aggregation, Expected: e.Expected,
	}.Finalize()
	if err != nil {
		return Judgement{}, err
	}
	j.Why = j.sentence(e)
	return j, nil
}

// lose decides an attempt whose job directory is gone: nothing that it did can be read,
// so that it is tried again while it may (section 6.1).
func (j *Judgement) lose(e Evidence) {
	code, retry := outcome.Classify(string(outcome.JobDirMissing), e.Attempt, outcome.MaxAttempts)
	j.Attempt = outcome.Finalized{
		Final: !retry, Status: outcome.AttemptFailed, Error: string(code), Outcome: outcome.Failed, OutcomeReason: code,
	}
	if retry {
		j.Attempt.Status = outcome.AttemptRetry
	}
	j.Why = "The job directory is not there." + j.future()
}

// Retry reports whether the attempt is to be made once more.
func (j Judgement) Retry() bool { return j.Attempt.Status == outcome.AttemptRetry }

func (j Judgement) sentence(e Evidence) string {
	completed := 0
	first := ""
	for _, t := range j.Attempt.Trials {
		if t.Status == outcome.TrialCompleted {
			completed++
		} else if first == "" {
			first = t.Name
		}
	}
	all := len(j.Attempt.Trials)
	var b strings.Builder
	switch {
	case len(e.Trials) == 0 && j.Attempt.Trials[0].Reason != "":
		b.WriteString("There is no record of a trial, and no result line that stands for one.")
	case len(e.Trials) == 0:
		b.WriteString("There is no record of a trial, so the result line stands for one.")
	case completed < all:
		fmt.Fprintf(&b, "%d of %d trials completed; %s is the first that did not, and one is enough to fail the attempt.", completed, all, first)
	case all == 1:
		b.WriteString("The trial completed.")
	default:
		fmt.Fprintf(&b, "All of %d trials completed.", all)
	}
	if e.Expected != nil && all != *e.Expected {
		fmt.Fprintf(&b, " %d were planned.", *e.Expected)
	}
	if j.Host.Status != outcome.Completed {
		fmt.Fprintf(&b, " The process counts as %s", j.Host.Status)
		if j.Host.Reason != "" {
			fmt.Fprintf(&b, " (%s)", j.Host.Reason)
		}
		if j.Attempt.Status == outcome.AttemptCompleted {
			b.WriteString(", which the records of the trials overrule")
		}
		b.WriteByte('.')
	}
	return b.String() + j.future()
}

// future says what comes next, and why.
func (j Judgement) future() string {
	code := j.Attempt.OutcomeReason
	switch {
	case j.Attempt.Status == outcome.AttemptCompleted:
		return ""
	case j.Retry():
		kind := "has no class, and such reasons are tried again"
		if code.Retryable() {
			kind = "may pass"
		}
		return fmt.Sprintf(" The reason %s %s: attempt %d of %d is followed by another one.", code, kind, j.Number, outcome.MaxAttempts)
	case code.Final() && j.Number < outcome.MaxAttempts:
		return fmt.Sprintf(" The reason %s is final.", code)
	default:
		return fmt.Sprintf(" Attempt %d of %d was the last.", j.Number, outcome.MaxAttempts)
	}
}

// Object is the stored form, as JSON has it.
func (j Judgement) Object() *value.Object {
	obj := value.NewObject(6)
	host := value.NewObject(5)
	host.Append("status", value.Str(j.Host.Status))
	host.Append("score", value.Float(j.Host.Score))
	host.Append("reason_code", reasonValue(j.Host.Reason))
	host.Append("payload", j.Host.Payload)
	host.Append("stderr", value.Str(j.Stderr))
	obj.Append("host", host)
	trials := value.List{}
	for i, t := range j.Attempt.Trials {
		trials = append(trials, trialObject(i+1, t))
	}
	obj.Append("trials", trials)
	attempt := value.NewObject(5)
	attempt.Append("number", value.NewInt(int64(j.Number)))
	attempt.Append("status", value.Str(j.Attempt.Status))
	attempt.Append("score", value.Float(j.Attempt.Score))
	attempt.Append("error", value.Str(j.Attempt.Error))
	attempt.Append("final", value.Bool(j.Attempt.Final))
	obj.Append("attempt", attempt)
	result := value.NewObject(3)
	result.Append("status", value.Str(j.Attempt.Outcome))
	result.Append("score", value.Float(j.Attempt.OutcomeScore))
	result.Append("reason_code", reasonValue(j.Attempt.OutcomeReason))
	obj.Append("outcome", result)
	obj.Append("retry", value.Bool(j.Retry()))
	obj.Append("why", value.Str(j.Why))
	return obj
}

func trialObject(number int, t outcome.TrialRecord) *value.Object {
	obj := value.NewObject(10)
	obj.Append("number", value.NewInt(int64(number)))
	obj.Append("task_id", value.Str(t.Task))
	obj.Append("trial_name", value.Str(t.Name))
	obj.Append("status", value.Str(t.Status))
	obj.Append("score", value.Null{})
	if t.Score != nil {
		obj.Set("score", value.Float(*t.Score))
	}
	obj.Append("reason_code", reasonValue(outcome.Code(t.Reason)))
	obj.Append("error", value.Str(t.Error))
	logs := value.List{}
	for _, name := range t.Logs {
		logs = append(logs, value.Str(name))
	}
	obj.Append("logs", logs)
	obj.Append("stdout_path", fileValue(t.StdoutFile))
	obj.Append("stderr_path", fileValue(t.StderrFile))
	return obj
}

// fileValue is null for no file.
func fileValue(name string) value.Value {
	if name == "" {
		return value.Null{}
	}
	return value.Str(name)
}
