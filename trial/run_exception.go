package trial

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Exception type names that other software matches on (Harbor job format,
// section 3.5).
const (
	environmentStartTimeout = "EnvironmentStartTimeoutError"
	agentSetupTimeout       = "AgentSetupTimeoutError"
	agentTimeout            = "AgentTimeoutError"
	verifierTimeout         = "VerifierTimeoutError"
	nonZeroAgentExit        = "NonZeroAgentExitCodeError"
	agentNotGone            = "AgentNotGoneError" // proctor's own
	healthcheckError        = "HealthcheckError"
	runtimeError            = "RuntimeError"
	valueError              = "ValueError"
	fileNotFoundError       = "FileNotFoundError"
)

// Exception is an error with the type name that results record for it.
type Exception struct {
	Type, Message string
	Err           error // the cause, may be nil
}

func (e *Exception) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Exception) Unwrap() error { return e.Err }

// ErrorType is the name under which results record the error.
func (e *Exception) ErrorType() string { return e.Type }

func exceptionf(typ, format string, args ...any) *Exception {
	return &Exception{Type: typ, Message: fmt.Sprintf(format, args...)}
}

// errCancelled is the cause of a trial's cancelled context.
var errCancelled = errors.New("the trial was cancelled")

// describe is the only place where an error becomes an exception name and a
// message. An error that names no type of its own is a RuntimeError, the way
// Harbor reports whatever its environment raises.
func describe(err error) (typ, message string) {
	if typed, ok := errors.AsType[interface {
		error
		ErrorType() string
	}](err); ok {
		return typed.ErrorType(), typed.Error()
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, errCancelled) {
		return Cancelled, ""
	}
	return runtimeError, err.Error()
}

// newExceptionInfo records an error. phase says where it happened.
func newExceptionInfo(err error, phase string, now time.Time) *ExceptionInfo {
	typ, message := describe(err)
	var trace strings.Builder
	fmt.Fprintf(&trace, "In phase %s:\n", phase)
	if full := err.Error(); full != message {
		fmt.Fprintf(&trace, "  %s\n", full)
	}
	for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(cause) {
		fmt.Fprintf(&trace, "  caused by: %s\n", cause)
	}
	fmt.Fprintf(&trace, "%s: %s\n", typ, message)
	return &ExceptionInfo{Type: typ, Message: message, Traceback: trace.String(), OccurredAt: Local(now)}
}
