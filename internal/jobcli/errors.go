package jobcli

import (
	"errors"

	"github.com/proctor-run/proctor/dataset"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/internal/suggest"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
)

// InUse makes a directory that somebody else writes to an error of usage.
func InUse(err error) error {
	if errors.Is(err, job.ErrOvertaken) {
		return exitcode.Usagef("%w", err)
	}
	if _, ok := errors.AsType[*jobdir.InUseError](err); !ok {
		return err
	}
	return exitcode.WithHint(exitcode.Usagef("%w", err), "wait for it to end, or end it; locks of dead processes are ignored")
}

// ClaimError makes a directory that cannot be had an error of usage.
func ClaimError(err error) error {
	if err = InUse(err); err == nil || exitcode.Of(err) == exitcode.Usage {
		return err
	}
	return exitcode.Usagef("%w", err)
}

// PrepareError makes what is wrong with the tasks or the job directory an
// error of usage: nothing was run.
func PrepareError(err error) error {
	if exitcode.Of(err) == exitcode.Interrupted {
		return err
	}
	if errors.Is(err, job.ErrNoTasks) {
		return exitcode.WithHint(exitcode.Usagef("%w", err), "name a task directory or a directory of tasks with -p")
	}
	if changed, ok := errors.AsType[*jobdir.ChangedError](err); ok {
		return changedError(changed)
	}
	if missing, ok := errors.AsType[*dataset.MissingError](err); ok {
		if hint := suggest.DidYouMean("", missing.Near); hint != "" {
			return exitcode.WithHint(exitcode.Usagef("%w", err), "%s", hint)
		}
	}
	return exitcode.Usagef("%w", err)
}

// changedError says what can be done about a job that was started with another
// configuration.
func changedError(err *jobdir.ChangedError) error {
	if err.Harmless() {
		return exitcode.WithHint(exitcode.Usagef("%w", err), "--accept-harmless resumes it; --job-name starts another job")
	}
	return exitcode.WithHint(exitcode.Usagef("%w", err), "put back what changes results, or start another job with --job-name")
}

// ResumeError is PrepareError for a job that is resumed.
func ResumeError(err error) error {
	switch {
	case errors.Is(err, job.ErrNoTasks), errors.Is(err, job.ErrTasksElsewhere):
		return exitcode.WithHint(exitcode.Usagef("%w", err), "paths of tasks are relative to the directory where the job was started; go there")
	case errors.Is(err, job.ErrForeignTrial):
		return exitcode.WithHint(exitcode.Usagef("%w", err), "its configuration or tasks were changed, or trials of another job were copied to it; 'proctor score' aggregates them as they are")
	}
	return PrepareError(err)
}
