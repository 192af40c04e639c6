// Package exitcode turns errors into exit codes, for every program of this
// module alike.
package exitcode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/proctor-run/proctor/exception"
)

// Exit codes, as docs/exit-codes.md lists them. No command chooses another.
const (
	OK          = 0
	Failed      = 1   // the program itself failed
	Usage       = 2   // bad usage or configuration
	TrialErrors = 3   // the job finished, some trials errored
	Threshold   = 4   // a threshold the user asked for was missed, or a check found a difference
	Budget      = 5   // the budget for models was used up before all trials had run
	Interrupted = 130 // interrupted by a signal
)

// Error carries an exit code and advice with an error. Without an error it is
// quiet: everything has been said already.
type Error struct {
	Code int
	Err  error
	Hint string
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Usagef reports what the user can mend in the command line or a file.
func Usagef(format string, args ...any) error {
	return &Error{Code: Usage, Err: fmt.Errorf(format, args...)}
}

// WithHint adds a line that says what to do.
func WithHint(err error, format string, args ...any) error {
	code := Of(err)
	if code == Interrupted {
		return err
	}
	return &Error{Code: code, Err: err, Hint: fmt.Sprintf(format, args...)}
}

// Quiet ends a command with a code when everything has been said already.
func Quiet(code int) error { return &Error{Code: code} }

// Of is the only place where errors become exit codes.
func Of(err error) int {
	var e *Error
	switch {
	case err == nil:
		return OK
	case errors.As(err, &e):
		return e.Code
	case errors.Is(err, context.Canceled):
		return Interrupted
	}
	return Failed
}

// WithOutput is the end of a command whose write to standard output failed with an error;
// nil is none. What was printed is not whole then, which no other end but that of a bad
// command line or of an interrupt may hide. A reader that went away has seen what it
// wanted: there is nothing to say of it.
func WithOutput(err, failed error) error {
	own := err != nil && !errors.Is(err, failed)
	switch {
	case failed == nil || own && gone(failed):
		return err
	case gone(failed):
		return Quiet(Failed)
	}
	text := fmt.Errorf("writing the output: %w", failed)
	if !own {
		return &Error{Code: Failed, Err: text}
	}
	code := Of(err)
	if code != Usage && code != Interrupted {
		code = Failed
	}
	hint := ""
	if e, ok := errors.AsType[*Error](err); ok {
		hint = e.Hint
		if e.Err == nil {
			return &Error{Code: code, Err: text}
		}
	}
	return &Error{Code: code, Err: errors.Join(err, text), Hint: hint}
}

// gone reports that the reader of a pipe has closed it.
func gone(err error) bool { return errors.Is(err, syscall.EPIPE) }

// Report prints the error of a program in plain words, and its hint, unless it is quiet.
func Report(w io.Writer, program string, err error) {
	var e *Error
	if errors.As(err, &e) && e.Err == nil {
		return
	}
	_, _ = fmt.Fprintf(w, "%s: %s\n", program, exception.PlainText(err))
	if errors.As(err, &e) && e.Hint != "" {
		_, _ = fmt.Fprintf(w, "%s: %s\n", program, e.Hint)
	}
}
