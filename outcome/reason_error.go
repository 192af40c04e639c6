package outcome

import (
	"errors"

	"github.com/proctor-run/proctor/reward"
)

// ReasonOf is the reason code of an error that ended a trial, by its type: the
// code it carries, as a method ReasonCode() Code, else that of the exception
// which results record for it, from its method ErrorType() string. Any other
// error means that the trial failed; no error has no reason. (Outcome mapping,
// sections 6.5 and 11.2.)
func ReasonOf(err error) Code {
	if err == nil {
		return ""
	}
	var coded interface{ ReasonCode() Code }
	if errors.As(err, &coded) {
		if code := coded.ReasonCode(); code.Known() {
			return code
		}
	}
	var typed interface{ ErrorType() string }
	if errors.As(err, &typed) {
		return ReasonOfException(typed.ErrorType())
	}
	return TrialFailed
}

// ReasonOfException is the reason code of the exception type that a trial's
// result records; "" is no exception. Names match exactly. Harbor's names are
// meant: a name that is not Harbor's, or says nothing about the phase, means that
// the trial failed.
func ReasonOfException(exceptionType string) Code {
	switch exceptionType {
	case "":
		return ""
	case "AgentTimeoutError":
		return AgentTimeout
	case "VerifierTimeoutError":
		return VerifierTimeout
	case "EnvironmentStartTimeoutError":
		return EnvironmentStartTimeout
	case "CancelledError":
		return CancelledError
	case string(reward.NotFound):
		return RewardMissing
	case string(reward.Empty):
		return RewardEmpty
	case string(reward.Unparsable):
		return RewardParseError
	}
	return TrialFailed
}
