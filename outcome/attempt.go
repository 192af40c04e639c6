package outcome

// Attempt is a consumer's attempt at one task, to be finalised.
type Attempt struct {
	Task        string
	Trials      []TrialRecord
	Host        Normalized // what the process as a whole gave
	Number      int        // of the attempt at this task, from 1
	Aggregation Aggregation
	// Expected is the planned number of trials; nil is no expectation.
	Expected *int
}

// AttemptStatus says how an attempt ended.
type AttemptStatus string

// The statuses of an attempt.
const (
	AttemptCompleted AttemptStatus = "completed"
	AttemptRetry     AttemptStatus = "failed_retryable"
	AttemptFailed    AttemptStatus = "failed"
)

// Finalized is an attempt's end.
type Finalized struct {
	Trials []TrialRecord // those of the attempt, or one that stands for them
	Final  bool          // the trials will not be tried again
	Status AttemptStatus
	Score  float64
	Error  string // "" if completed

	// Outcome is the task's result. Its score counts where all trials
	// completed; if they were not all that were planned, then only where the
	// process completed too.
	Outcome       Status
	OutcomeScore  float64
	OutcomeReason Code // may be set although the outcome is completed
}

// Finalize decides the outcome of an attempt (outcome mapping, section 7.3): it
// completes with the aggregate of its trials if all that were expected did, no
// matter what the process claimed; one bad trial brings it to nothing. Errors are
// those of [Aggregation.Of].
func (a Attempt) Finalize() (Finalized, error) {
	f := Finalized{Trials: a.Trials}
	if len(f.Trials) == 0 {
		f.Trials = []TrialRecord{a.standIn()}
	}
	aggregate, err := a.Aggregation.Of(trialScores(f.Trials))
	if err != nil {
		return Finalized{}, err
	}
	allCompleted := true
	for _, t := range f.Trials {
		allCompleted = allCompleted && t.Status == TrialCompleted
	}
	reason := NormalizeReason(string(a.Host.Reason))
	if reason == "" {
		reason = trialReason(f.Trials, allCompleted)
	}
	asPlanned := a.Expected == nil || len(f.Trials) == *a.Expected
	if allCompleted && (asPlanned || a.Host.Status == Completed) {
		f.OutcomeScore = aggregate
	}
	if allCompleted && asPlanned {
		f.Final, f.Status, f.Score = true, AttemptCompleted, aggregate
		f.Outcome, f.OutcomeReason = Completed, reason
		return f, nil
	}
	if reason == "" {
		reason = ResultPartial // nothing but the number of trials is wrong
	}
	code, retry := Classify(string(reason), a.Number, MaxAttempts)
	f.Final, f.Status = !retry, AttemptFailed
	if retry {
		f.Status = AttemptRetry
	}
	f.Error, f.Outcome, f.OutcomeReason = string(code), Failed, code
	return f, nil
}

// standIn is the trial that stands for an attempt without any.
func (a Attempt) standIn() TrialRecord {
	t := TrialRecord{Task: a.Task, Name: "stdout-summary", Status: TrialStatus(a.Host.Status), Score: &a.Host.Score}
	switch {
	case a.Host.Status == Completed:
	case a.Host.Status == Failed && a.Host.Reason == "":
	default:
		return missingTrial(a.Task, a.Task)
	}
	return t
}

// trialScores are the scores of trials, 0 for those without and for minus 0.
func trialScores(trials []TrialRecord) []float64 {
	scores := make([]float64, len(trials))
	for i, t := range trials {
		if t.Score != nil && *t.Score != 0 {
			scores[i] = *t.Score
		}
	}
	return scores
}

// trialReason is the first reason that a trial gives.
func trialReason(trials []TrialRecord, allCompleted bool) Code {
	for _, t := range trials {
		if t.Reason != "" {
			return Code(t.Reason)
		}
	}
	if allCompleted {
		return ""
	}
	return TrialFailed
}
