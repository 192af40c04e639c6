// Package exitcode turns errors into exit codes, for every program of this
// module alike.
package exitcode

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// Report prints the error of a program and its hint, unless it is quiet.
func Report(w io.Writer, program string, err error) {
	var e *Error
	if errors.As(err, &e) && e.Err == nil {
		return
	}
	_, _ = fmt.Fprintf(w, "%s: %v\n", program, err)
	if errors.As(err, &e) && e.Hint != "" {
		_, _ = fmt.Fprintf(w, "%s: %s\n", program, e.Hint)
	}
}
