package cube

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"

	"github.com/proctor-run/proctor/exception"
)

// ValueErrorf returns a ValueError: a value that is of the right kind but
// cannot be used.
func ValueErrorf(format string, args ...any) error {
	return exception.Errorf(exception.ValueError, format, args...)
}

// TypeErrorf returns a TypeError: a value of the wrong kind.
func TypeErrorf(format string, args ...any) error {
	return exception.Errorf(exception.TypeError, format, args...)
}

// keyErrorf returns a KeyError: a name that is not there.
func keyErrorf(format string, args ...any) error {
	return exception.Errorf(exception.KeyError, format, args...)
}

// RuntimeErrorf returns a RuntimeError: something outside is not as needed.
func RuntimeErrorf(format string, args ...any) error {
	return exception.Errorf(exception.RuntimeError, format, args...)
}

// NotImplementedErrorf returns a NotImplementedError.
func NotImplementedErrorf(format string, args ...any) error {
	return exception.Errorf(exception.NotImplementedError, format, args...)
}

// PanicError is a panic in code of a cube, turned into an error at the
// boundary of the layer.
type PanicError = exception.PanicError

// ExitError is an end of the goroutine in code of a cube, as an error of the task.
type ExitError = exception.ExitError

// ErrorType returns the class name of an error: its own, if it or an error it
// wraps has a method ErrorType() string, else one for well-known errors
// (TimeoutError, OSError, JSONDecodeError), else "Exception". (CUBE, section
// 2.6.)
func ErrorType(err error) string {
	if named := exception.TypeOf(err); named != "" {
		return named
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return exception.TimeoutError
	}
	for _, is := range []func(error) bool{isA[*json.SyntaxError], isA[*json.UnmarshalTypeError]} {
		if is(err) {
			return exception.JSONDecodeError
		}
	}
	for _, is := range []func(error) bool{isA[*fs.PathError], isA[*os.LinkError], isA[*os.SyscallError], isA[*exec.Error], isA[net.Error]} {
		if is(err) {
			return exception.OSError
		}
	}
	return exception.Exception
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
