package exception

// Exceptions of a trial's phases. Harbor's retry rules (job format, section
// 3.5) name them, consumers of results derive reason codes from the first four
// (outcome mapping, section 11.2), and resuming filters trials by them.
const (
	AgentTimeoutError            = "AgentTimeoutError"
	VerifierTimeoutError         = "VerifierTimeoutError"
	EnvironmentStartTimeoutError = "EnvironmentStartTimeoutError"
	// CancelledError marks a trial that was interrupted: it is neither counted
	// as finished nor kept when the job is resumed.
	CancelledError            = "CancelledError"
	AgentSetupTimeoutError    = "AgentSetupTimeoutError"
	NonZeroAgentExitCodeError = "NonZeroAgentExitCodeError"
	HealthcheckError          = "HealthcheckError"
	AddTestsDirError          = "AddTestsDirError"
	DownloadVerifierDirError  = "DownloadVerifierDirError"
)

// Exceptions of reading rewards (reward semantics, section 2). Harbor does not
// retry them, and consumers of results derive reason codes from the first three.
const (
	RewardFileNotFoundError  = "RewardFileNotFoundError"
	RewardFileEmptyError     = "RewardFileEmptyError"
	VerifierOutputParseError = "VerifierOutputParseError"
	ValidationError          = "ValidationError" // pydantic's
)

// Exceptions without a counterpart in Harbor.
const (
	// RewardTamperedError: the reward files are not what the tests alone could
	// have left. It is never retried unless it is asked for by name.
	RewardTamperedError = "RewardTamperedError"
	// RewardFileTooLargeError: Harbor reads files of any size.
	RewardFileTooLargeError = "RewardFileTooLargeError"
	// VerifierSealError: a sandbox does not let the reward channel be sealed.
	VerifierSealError = "VerifierSealError"
	// AgentNotGoneError: it cannot be proven that nothing of an agent is
	// running, so that its work is not verified.
	AgentNotGoneError = "AgentNotGoneError"
	// SubmissionCodeError: an agent's code cannot be imported, or gives no agent
	// (outcome mapping, section 8.3).
	SubmissionCodeError = "SubmissionCodeError"
	// BudgetExceededError: an agent's calls of models have used up a budget. Its work is
	// verified. It is never retried unless it is asked for by name.
	BudgetExceededError = "BudgetExceededError"
)

// Exceptions of the independent runner (outcome mapping, sections 4, 9, 10 and
// 13).
const (
	DoodConfigError             = "DoodConfigError"
	InvalidAggregationModeError = "InvalidAggregationModeError"
	InvalidKeepPolicyError      = "InvalidKeepPolicyError"
	ResultSchemaError           = "ResultSchemaError"
)

// Python's built-in exceptions. Harbor and CUBE raise them for bad input and
// for failures of the host; CUBE's clients match on them (CUBE, section 1.9).
const (
	AttributeError        = "AttributeError"
	Exception             = "Exception"
	FileExistsError       = "FileExistsError"
	FileNotFoundError     = "FileNotFoundError"
	indexError            = "IndexError"
	IsADirectoryError     = "IsADirectoryError"
	JSONDecodeError       = "JSONDecodeError"
	KeyError              = "KeyError"
	NotADirectoryError    = "NotADirectoryError"
	NotImplementedError   = "NotImplementedError"
	OSError               = "OSError"
	OverflowError         = "OverflowError"
	PermissionError       = "PermissionError"
	RecursionError        = "RecursionError"
	RuntimeError          = "RuntimeError" // also what results record for an error without a name
	StopIteration         = "StopIteration"
	SymlinkRecursionError = "SymlinkRecursionError" // of the library that Harbor hashes directories with
	TimeoutError          = "TimeoutError"
	TypeError             = "TypeError"
	UnicodeEncodeError    = "UnicodeEncodeError"
	UnicodeDecodeError    = "UnicodeDecodeError"
	ZeroDivisionError     = "ZeroDivisionError"
	ValueError            = "ValueError"
)
