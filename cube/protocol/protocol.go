// Package protocol has the errors of CUBE's serving protocol (CUBE, section 9),
// with the codes, messages and details that clients of the reference know. They
// are for programs that serve tasks over a protocol of their own; the Task layer
// returns none of them, and proctor serves nothing.
package protocol

import (
	"fmt"

	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/value"
)

// Error is an error of the serving protocol: a code for programs, a message for
// people and details for both.
type Error struct {
	// Class is the exception's name in the reference, "TaskNotFoundException".
	Class string
	// Code is for programs: "TASK_NOT_FOUND".
	Code    string
	Message string
	// Details are what the message is about; never nil.
	Details *value.Object
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// ErrorType returns the class, as results record it.
func (e *Error) ErrorType() string { return e.Class }

// New returns an error with a code of one's own, of the class CUBEException. The
// details are copied; nil is none.
func New(code, message string, details *value.Object) *Error {
	if details == nil {
		details = &value.Object{}
	}
	return &Error{"CUBEException", code, message, details.Clone()}
}

// TaskNotFound is for a task id that nothing has.
func TaskNotFound(taskID string) *Error {
	return &Error{"TaskNotFoundException", "TASK_NOT_FOUND", fmt.Sprintf("Task with id '%s' not found", taskID), typed.Pairs("task_id", taskID)}
}

// SessionNotFound is for a session id that nothing has.
func SessionNotFound(sessionID string) *Error {
	return &Error{"SessionNotFoundException", "SESSION_NOT_FOUND", fmt.Sprintf("Session with id '%s' not found", sessionID), typed.Pairs("session_id", sessionID)}
}

// SessionLimitExceeded is for one session too many.
func SessionLimitExceeded(limit int) *Error {
	return &Error{"SessionLimitException", "SESSION_LIMIT_EXCEEDED", fmt.Sprintf("Maximum concurrent sessions (%d) exceeded", limit), typed.Pairs("limit", limit)}
}

// BenchmarkNotFound is for a server without a benchmark.
func BenchmarkNotFound() *Error {
	return &Error{"BenchmarkNotFoundException", "BENCHMARK_NOT_FOUND", "Benchmark not configured or not found", typed.Pairs()}
}

// ToolExecutionFailed is for a tool that could not work.
func ToolExecutionFailed(tool, message string) *Error {
	return &Error{"ToolExecutionException", "TOOL_EXECUTION_ERROR", fmt.Sprintf("Error executing tool '%s': %s", tool, message), typed.Pairs("tool_name", tool, "error", message)}
}

// InvalidAction is for an action that cannot be executed.
func InvalidAction(action, reason string) *Error {
	return &Error{"InvalidActionException", "INVALID_ACTION", fmt.Sprintf("Action '%s' is invalid: %s", action, reason), typed.Pairs("action_name", action, "reason", reason)}
}

// TaskClosed is for a session that has ended.
func TaskClosed(sessionID string) *Error {
	return &Error{"TaskClosedException", "TASK_CLOSED", fmt.Sprintf("Task session '%s' is closed", sessionID), typed.Pairs("session_id", sessionID)}
}

// ResourceNotFound is for a resource URI that nothing has.
func ResourceNotFound(uri string) *Error {
	return &Error{"ResourceNotFoundException", "RESOURCE_NOT_FOUND", "Resource not found: " + uri, typed.Pairs("uri", uri)}
}
