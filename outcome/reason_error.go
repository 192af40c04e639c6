package outcome

import (
	"cmp"
	"errors"

	"github.com/proctor-run/proctor/exception"
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
	return cmp.Or(ReasonOfException(exception.TypeOf(err)), TrialFailed)
}

// ReasonOfException is the reason code of the exception type that a trial's
// result records; "" is no exception. Names match exactly. Harbor's names are
// meant, and SubmissionCodeError: another name that is not Harbor's, or one that says
// nothing about the phase, means that the trial failed.
func ReasonOfException(exceptionType string) Code {
	switch exceptionType {
	case "":
		return ""
	case exception.AgentTimeoutError:
		return AgentTimeout
	case exception.VerifierTimeoutError:
		return VerifierTimeout
	case exception.EnvironmentStartTimeoutError:
		return EnvironmentStartTimeout
	case exception.CancelledError:
		return CancelledError
	case exception.SubmissionCodeError:
		return SubmissionCodeFailed
	case exception.RewardFileNotFoundError:
		return RewardMissing
	case exception.RewardFileEmptyError:
		return RewardEmpty
	case exception.VerifierOutputParseError:
		return RewardParseError
	}
	return TrialFailed
}
