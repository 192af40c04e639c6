package trial

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/jobdir"
)

// errCancelled is the cause of a trial's cancelled context.
var errCancelled = errors.New("the trial was cancelled")

// describe is the only place where an error becomes an exception name and a
// message. An error that names no type of its own is a RuntimeError, the way
// Harbor reports whatever its environment raises.
func describe(err error) (typ, message string) {
	if typed, ok := exception.Of(err); ok {
		return typed.ErrorType(), typed.Error()
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, errCancelled) {
		return exception.CancelledError, ""
	}
	return exception.RuntimeError, err.Error()
}

// newExceptionInfo describes an error that occurred in a phase.
func newExceptionInfo(err error, phase string, now time.Time) *jobdir.ExceptionInfo {
	typ, message := describe(err)
	var trace strings.Builder
	fmt.Fprintf(&trace, "In phase %s:\n", phase)
	if full := err.Error(); full != message {
		fmt.Fprintf(&trace, "  %s\n", full)
	}
	for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(cause) {
		fmt.Fprintf(&trace, "  caused by: %s\n", cause)
	}
	trace.WriteString(typ)
	if message != "" { // as Python ends a traceback
		trace.WriteString(": " + message)
	}
	trace.WriteByte('\n')
	return &jobdir.ExceptionInfo{Type: typ, Message: message, Traceback: trace.String(), OccurredAt: jobdir.Local(now)}
}
