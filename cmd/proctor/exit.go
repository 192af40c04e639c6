package main

import (
	"errors"
	"fmt"

	"github.com/proctor-run/proctor/internal/exitcode"
)

// The exit codes of package exitcode, by the names that commands use.
const (
	exitOK          = exitcode.OK
	exitFailed      = exitcode.Failed
	exitUsage       = exitcode.Usage
	exitTrialErrors = exitcode.TrialErrors
	exitThreshold   = exitcode.Threshold
	exitInterrupted = exitcode.Interrupted
)

// usageErrorf reports what the user can mend in the command line or a file.
func usageErrorf(format string, args ...any) error { return exitcode.Usagef(format, args...) }

// withHint adds a line that says what to do.
func withHint(err error, format string, args ...any) error {
	return exitcode.WithHint(err, format, args...)
}

// errInterrupted ends a command that was interrupted before it did anything.
var errInterrupted = &exitcode.Error{Code: exitInterrupted, Err: errors.New("interrupted; nothing was run")}

// errQuiet ends a command with a code when everything has been said already.
func errQuiet(code int) error { return exitcode.Quiet(code) }

func exitCode(err error) int { return exitcode.Of(err) }

// printError prints the error and its hint, unless it is quiet.
func printError(env *Env, err error) {
	w := env.hidden().Writer(env.Stderr)
	exitcode.Report(w, "proctor", err)
	_ = w.Close() // nothing could be said of it
}

// asHarbor gives refusals Harbor's exit code when that is asked for: 1 for
// everything but flags that cannot be read (Harbor job format, section 7).
func asHarbor(err error, asked bool) error {
	e, ok := errors.AsType[*exitcode.Error](err)
	if !asked || !ok || e.Code != exitUsage {
		return err
	}
	if e.Err == nil {
		return errQuiet(exitFailed)
	}
	return &exitcode.Error{Code: exitFailed, Err: err, Hint: e.Hint}
}

// outputError says what a failed write was for; nil stays nil.
func outputError(err error) error {
	if err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}
