package reward

import "github.com/proctor-run/proctor/exception"

// Kind is the class name of an exception. It is an error itself, so that
// errors.Is(err, reward.NotFound) asks for a kind. Trial results hold these names
// as exception_type, and outcomes attach reason codes to them.
type Kind string

// The ways in which reading rewards goes wrong (reward semantics, section 2).
const (
	NotFound    Kind = exception.RewardFileNotFoundError  // there is no reward file
	Empty       Kind = exception.RewardFileEmptyError     // its size is 0
	Unparsable  Kind = exception.VerifierOutputParseError // it is not a number, not JSON, not UTF-8
	Invalid     Kind = exception.ValidationError          // it is JSON, but not numbers by name
	TooDeep     Kind = exception.RecursionError           // it is JSON nested too deeply
	IsDirectory Kind = exception.IsADirectoryError        // it is a directory
	NotAllowed  Kind = exception.PermissionError          // the host does not let it be read
	Unreadable  Kind = exception.OSError                  // the host cannot read it

	// TooLarge has no counterpart in Harbor, which reads files of any size.
	TooLarge Kind = exception.RewardFileTooLargeError

	// Tampered has none either: the file is a link out of the trial's directory, which
	// Harbor follows.
	Tampered Kind = exception.RewardTamperedError

	// ScriptNotFound and ScriptFailed come from uv-script metrics (reward
	// semantics, section 8.2).
	ScriptNotFound Kind = exception.FileNotFoundError
	ScriptFailed   Kind = exception.RuntimeError
)

// Error returns the class name.
func (k Kind) Error() string { return string(k) }

// An Error is an exception that Harbor records for a trial or aborts a job with.
type Error struct {
	Kind    Kind
	Message string // str(exception)
	Cause   error  // the exception it was raised from; nil if none

	// Problems are those of a ValidationError, at most [MaxProblems] of the
	// Total that there are.
	Problems []Problem
	Total    int
}

// Error returns the exception's text.
func (e *Error) Error() string { return e.Message }

// ErrorType returns the exception's class name.
func (e *Error) ErrorType() string { return string(e.Kind) }

// Is reports whether target is the error's kind.
func (e *Error) Is(target error) bool { return target == error(e.Kind) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }
