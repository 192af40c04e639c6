package value

import (
	"cmp"
	"fmt"

	"github.com/proctor-run/proctor/exception"
)

// Exception is the class name of a Python exception. It is an error itself, so
// that errors.Is(err, ValueError) asks for a class, subclasses included.
type Exception string

// The exceptions that this package reports. Other programs read these names in
// result files.
const (
	ValueError         Exception = exception.ValueError
	JSONDecodeError    Exception = exception.JSONDecodeError    // a ValueError
	UnicodeDecodeError Exception = exception.UnicodeDecodeError // a ValueError
	OverflowError      Exception = exception.OverflowError
	ZeroDivisionError  Exception = exception.ZeroDivisionError
	RecursionError     Exception = exception.RecursionError
)

// Error returns the class name.
func (x Exception) Error() string { return string(x) }

// An Error is a Python exception: its class and its text.
type Error struct {
	Exception Exception
	// Message is str(exception), position included.
	Message string
	// Line and Column, counted from 1, and Offset, counted from 0, in
	// characters, tell where JSON text is wrong. Line is 0 for other errors.
	Line, Column, Offset int
	// Plain is the text in plain words, for people; empty where Message is plain.
	Plain string
}

// Error returns the exception's text.
func (e *Error) Error() string { return e.Message }

// PlainText returns the exception's text in plain words.
func (e *Error) PlainText() string { return cmp.Or(e.Plain, e.Message) }

// ErrorType returns the exception's class name.
func (e *Error) ErrorType() string { return string(e.Exception) }

// Is reports whether the exception is of the target class or derives from it.
func (e *Error) Is(target error) bool {
	class, ok := target.(Exception)
	if !ok {
		return false
	}
	if class == e.Exception {
		return true
	}
	return class == ValueError && (e.Exception == JSONDecodeError || e.Exception == UnicodeDecodeError)
}

func raise(x Exception, format string, args ...any) *Error {
	return &Error{Exception: x, Message: fmt.Sprintf(format, args...)}
}
