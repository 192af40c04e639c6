package outcome

import (
	"cmp"
	"errors"

	"github.com/proctor-run/proctor/exception"
)

// reasonOf is the reason code of an error that ended a trial, by its type: the
// code it carries, as a method ReasonCode() Code, else that of the exception
// which results record for it, from its method ErrorType() string. Any other
// error means that the trial failed; no error has no reason. (Outcome mapping,
// sections 6.5 and 11.2.)
func reasonOf(err error) Code {
	if err == nil {
		return ""
	}
	var coded interface{ ReasonCode() Code }
	if errors.As(err, &coded) {
		if code := coded.ReasonCode(); code.Known() {
			return code
		}
	}
	return cmp.Or(ReasonOfException(exception.TypeOf(err)), trialFailed)
}

// ReasonOfException is the reason code of the exception type that a trial's
// result records; "" is no exception. Names match exactly. Harbor's names are
// meant: a name that is not Harbor's, or says nothing about the phase, means that
// the trial failed.
func ReasonOfException(exceptionType string) Code {
	switch exceptionType {
	case "":
		return ""
	case exception.AgentTimeoutError:
		return agentTimeout
	case exception.VerifierTimeoutError:
		return verifierTimeout
	case exception.EnvironmentStartTimeoutError:
		return environmentStartTimeout
	case exception.CancelledError:
		return cancelledError
	case exception.RewardFileNotFoundError:
		return rewardMissing
	case exception.RewardFileEmptyError:
		return rewardEmpty
	case exception.VerifierOutputParseError:
		return rewardParseError
	}
	return trialFailed
}
