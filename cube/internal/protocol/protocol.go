package cube

import "fmt"

// ProtocolError is an error of the serving protocol: a code for programs and a
// message for people (CUBE, section 9). The task layer itself returns none.
type ProtocolError struct {
	Class   string // name in the reference
	Code    string
	Message string
	Details *Object
}

func (e *ProtocolError) Error() string { return e.Message }

// ErrorType returns the class name.
func (e *ProtocolError) ErrorType() string { return e.Class }

// NewProtocolError returns an error with a code of one's own.
func NewProtocolError(code, message string, details *Object) *ProtocolError {
	return &ProtocolError{"CUBEException", code, message, orEmpty(details)}
}

// TaskNotFound is for a task id that nothing has.
func TaskNotFound(taskID string) *ProtocolError {
	return &ProtocolError{"TaskNotFoundException", "TASK_NOT_FOUND", fmt.Sprintf("Task with id '%s' not found", taskID), Pairs("task_id", taskID)}
}

// SessionNotFound is for a session id that nothing has.
func SessionNotFound(sessionID string) *ProtocolError {
	return &ProtocolError{"SessionNotFoundException", "SESSION_NOT_FOUND", fmt.Sprintf("Session with id '%s' not found", sessionID), Pairs("session_id", sessionID)}
}

// SessionLimitExceeded is for one session too many.
func SessionLimitExceeded(limit int) *ProtocolError {
	return &ProtocolError{"SessionLimitException", "SESSION_LIMIT_EXCEEDED", fmt.Sprintf("Maximum concurrent sessions (%d) exceeded", limit), Pairs("limit", limit)}
}

// BenchmarkNotFound is for a server without a benchmark.
func BenchmarkNotFound() *ProtocolError {
	return &ProtocolError{"BenchmarkNotFoundException", "BENCHMARK_NOT_FOUND", "Benchmark not configured or not found", Pairs()}
}

// ToolExecutionFailed is for a tool that could not work.
func ToolExecutionFailed(tool, message string) *ProtocolError {
	return &ProtocolError{"ToolExecutionException", "TOOL_EXECUTION_ERROR", fmt.Sprintf("Error executing tool '%s': %s", tool, message), Pairs("tool_name", tool, "error", message)}
}

// InvalidAction is for an action that cannot be executed.
func InvalidAction(action, reason string) *ProtocolError {
	return &ProtocolError{"InvalidActionException", "INVALID_ACTION", fmt.Sprintf("Action '%s' is invalid: %s", action, reason), Pairs("action_name", action, "reason", reason)}
}

// TaskClosed is for a session that has ended.
func TaskClosed(sessionID string) *ProtocolError {
	return &ProtocolError{"TaskClosedException", "TASK_CLOSED", fmt.Sprintf("Task session '%s' is closed", sessionID), Pairs("session_id", sessionID)}
}

// ResourceNotFound is for a resource URI that nothing has.
func ResourceNotFound(uri string) *ProtocolError {
	return &ProtocolError{"ResourceNotFoundException", "RESOURCE_NOT_FOUND", "Resource not found: " + uri, Pairs("uri", uri)}
}
