package cube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
)

// The class names that other implementations match on (CUBE, section 1.9).
const (
	typeValueError          = "ValueError"
	typeTypeError           = "TypeError"
	typeKeyError            = "KeyError"
	typeRuntimeError        = "RuntimeError"
	typeNotImplementedError = "NotImplementedError"
	typeOSError             = "OSError"
	typeTimeoutError        = "TimeoutError"
	typeJSONDecodeError     = "JSONDecodeError"
	typeException           = "Exception"
)

// Error is an error that names its class in the reference's words. Readers on
// the other side of a process boundary tell errors apart by that name, and it
// becomes the error_type of a [StepError].
type Error struct {
	// Type is the class name: "ValueError", "TypeError", …
	Type string
	// Message is the whole text; Error returns nothing else.
	Message string
	// Cause, when set, is what errors.Is and errors.As look at next.
	Cause error
}

// Error returns the message alone.
func (e *Error) Error() string { return e.Message }

// ErrorType returns the class name.
func (e *Error) ErrorType() string { return e.Type }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

func errorf(class, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Type: class, Message: err.Error(), Cause: errors.Unwrap(err)}
}

// ValueErrorf returns a ValueError: a value that is of the right kind but
// cannot be used.
func ValueErrorf(format string, args ...any) error { return errorf(typeValueError, format, args...) }

// TypeErrorf returns a TypeError: a value of the wrong kind.
func TypeErrorf(format string, args ...any) error { return errorf(typeTypeError, format, args...) }

// KeyErrorf returns a KeyError: a name that is not there.
func KeyErrorf(format string, args ...any) error { return errorf(typeKeyError, format, args...) }

// RuntimeErrorf returns a RuntimeError: something outside is not as needed.
func RuntimeErrorf(format string, args ...any) error {
	return errorf(typeRuntimeError, format, args...)
}

// NotImplementedErrorf returns a NotImplementedError.
func NotImplementedErrorf(format string, args ...any) error {
	return errorf(typeNotImplementedError, format, args...)
}

// PanicError is a panic in code of a cube, turned into an error at the
// boundary of the layer.
type PanicError struct {
	Where string // the hook: "Evaluate", "tool Close", …
	Value any    // what was given to panic
	Stack string // the stack of the panicking goroutine
}

// Error tells where the panic was and its value, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic in %s: %v", e.Where, e.Value) }

// ErrorType returns "RuntimeError".
func (e *PanicError) ErrorType() string { return typeRuntimeError }

// Unwrap returns the panic's value when that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ErrorType returns the class name of an error: its own, if it or an error it
// wraps has a method ErrorType() string, else one for well-known errors
// (TimeoutError, OSError, JSONDecodeError), else "Exception". (CUBE, section
// 2.6.)
func ErrorType(err error) string {
	var named interface{ ErrorType() string }
	if errors.As(err, &named) {
		return named.ErrorType()
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return typeTimeoutError
	}
	for _, is := range []func(error) bool{isA[*json.SyntaxError], isA[*json.UnmarshalTypeError]} {
		if is(err) {
			return typeJSONDecodeError
		}
	}
	for _, is := range []func(error) bool{isA[*fs.PathError], isA[*os.LinkError], isA[*os.SyscallError], isA[*exec.Error], isA[net.Error]} {
		if is(err) {
			return typeOSError
		}
	}
	return typeException
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
