package main

import (
	"context"
	"errors"
	"fmt"
)

// Exit codes, as docs/exit-codes.md lists them. No command chooses another.
const (
	exitOK          = 0
	exitFailed      = 1   // proctor itself failed
	exitUsage       = 2   // bad usage or configuration
	exitTrialErrors = 3   // the job finished, some trials errored
	exitThreshold   = 4   // a threshold the user asked for was missed, or a check found a difference
	exitInterrupted = 130 // interrupted by a signal
)

// commandError carries an exit code and advice with an error.
type commandError struct {
	code int
	err  error
	hint string
}

func (e *commandError) Error() string { return e.err.Error() }
func (e *commandError) Unwrap() error { return e.err }

// usageErrorf reports what the user can mend in the command line or a file.
func usageErrorf(format string, args ...any) error {
	return &commandError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// withHint adds a line that says what to do.
func withHint(err error, format string, args ...any) error {
	code := exitCode(err)
	if code == exitInterrupted {
		return err
	}
	return &commandError{code: code, err: err, hint: fmt.Sprintf(format, args...)}
}

// errInterrupted ends a command that was interrupted before it did anything.
var errInterrupted = &commandError{code: exitInterrupted, err: errors.New("interrupted; nothing was run")}

// errQuiet ends a command with a code when everything has been said already.
func errQuiet(code int) error { return &commandError{code: code} }

// exitCode is the only place where errors become exit codes.
func exitCode(err error) int {
	var ce *commandError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &ce):
		return ce.code
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitFailed
}

// asHarbor gives refusals Harbor's exit code when that is asked for: 1 for
// everything but flags that cannot be read (Harbor job format, section 7).
func asHarbor(err error, asked bool) error {
	ce, ok := errors.AsType[*commandError](err)
	if !asked || !ok || ce.code != exitUsage {
		return err
	}
	if ce.err == nil {
		return errQuiet(exitFailed)
	}
	return &commandError{code: exitFailed, err: err, hint: ce.hint}
}

// report prints the error and its hint, unless it is quiet.
func report(env *Env, err error) {
	var ce *commandError
	if errors.As(err, &ce) && ce.err == nil {
		return
	}
	fmt.Fprintf(env.Stderr, "proctor: %v\n", err)
	if errors.As(err, &ce) && ce.hint != "" {
		fmt.Fprintf(env.Stderr, "proctor: %s\n", ce.hint)
	}
}
