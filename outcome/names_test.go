package outcome

// What only tests outside the package need by name.

type (
	Diagnostic = diagnostic
)

const (
	AgentTimeout            = agentTimeout
	AttemptCompleted        = attemptCompleted
	AttemptFailed           = attemptFailed
	BestOfK                 = bestOfK
	CancelledError          = cancelledError
	EnvironmentStartTimeout = environmentStartTimeout
	GenericFailed           = genericFailed
	KeepAboveBound          = keepAboveBound
	KeepAll                 = keepAll
	MaxAttempts             = maxAttempts
	MeanOfAttempts          = meanOfAttempts
	ResultMalformed         = resultMalformed
	ResultPartial           = resultPartial
	RewardEmpty             = rewardEmpty
	RewardMissing           = rewardMissing
	RewardParseError        = rewardParseError
	SubmissionCodeFailed    = submissionCodeFailed
	TrialCompleted          = trialCompleted
	TrialErrored            = trialErrored
	TrialFailed             = trialFailed
	TrialResultMalformed    = trialResultMalformed
	TrialUnsolved           = trialUnsolved
	VerifierTimeout         = verifierTimeout
)

var (
	AnnotateStderr   = annotateStderr
	Classify         = classify
	Codes            = codes
	Coerce           = coerce
	Diagnostics      = diagnostics
	Explain          = explain
	FindLine         = findLine
	GroupByTask      = groupByTask
	NormalizeReason  = normalizeReason
	ParseAggregation = parseAggregation
	ParseKeepPolicy  = parseKeepPolicy
	ParsePolicy      = parsePolicy
	ReasonOf         = reasonOf
	Remap            = remap
	TrialScore       = trialScore
)
