// Package report has what is reported about jobs, trials, tasks and trajectories:
// the values that proctor prints with --json, and the functions that read them
// from files. It runs nothing and writes to no directory that it reads.
//
//	proctor job list --json           [ReadJobs], a [ListedJob] per line
//	proctor job show --json           [ReadJob], a [Job]
//	proctor job summarize --json      [Job.Digest], a [Digest]
//	proctor trial show --json         [ReadTrial], a [Trial]
//	proctor score --json              [NewScore], a [Score] per line
//	proctor outcome --json            [ReadOutcome], an [OutcomeDocument]
//	proctor compare --json            [Compare], a [Comparison]
//	proctor task show --json          [ReadTask], a [Task]
//	proctor task validate --json      [ValidateTask], a [TaskValidation] per line
//	proctor traj show --json          [ReadTrajectory], a [Trajectory] per line
//	proctor traj validate --json      [ValidateTrajectory], a [TrajectoryValidation] per line
//
// [WriteJSON] writes such a value byte for byte as the command does. Fields that
// are not in the JSON (json:"-") hold the documents that a value was made of, for
// those who print it for people. [ReadOutcome] reads what proctor outcome --explain
// tells.
//
// Durations are in seconds and costs in US dollars. Texts come from files that
// tasks and agents may have written: they are neither cleaned of control
// characters nor escaped for any page.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/value"
)

// Number is written as Python writes floats, and as null where JSON has no number
// for it: NaN and the infinities.
type Number float64

// MarshalJSON writes the number. It returns no error.
func (x Number) MarshalJSON() ([]byte, error) {
	return value.AppendPydanticFloat(nil, float64(x)), nil
}

// WriteJSON writes a value as one JSON object on a line, as commands do with
// --json: without the escapes that JSON within HTML needs.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// NotFoundError is the error for a path that does not hold what was to be read.
type NotFoundError struct {
	Path string
	Kind string // what was to be read: "job" or "trial"
	Err  error
}

// Error names the path, the kind and the reason.
func (e *NotFoundError) Error() string {
	return fmt.Sprintf("%q is not a %s directory: %v", e.Path, e.Kind, e.Err)
}

// Unwrap returns the reason.
func (e *NotFoundError) Unwrap() error { return e.Err }

// InvalidError is the error for a file that exists and whose contents are not
// valid. Its text names the file.
type InvalidError struct{ Err error }

// Error is the text of the reason.
func (e *InvalidError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *InvalidError) Unwrap() error { return e.Err }

// State says whether a job or a trial has ended.
type State string

// The states. A job is running while a process that lives writes to its directory; what
// nobody runs any more is unfinished. A trial without a result is running while the journal
// of its job says so, and else unfinished. Only a [ListedJob] is unreadable.
const (
	Finished   State = "finished"
	Running    State = "running"
	Unfinished State = "unfinished"
	Unreadable State = "unreadable"
)

// stateOf is the state of a job whose result has no end.
func stateOf(dir string) State {
	if jobdir.ReadHolder(dir, hostName()) != nil {
		return Running
	}
	return Unfinished
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// orEmpty makes an empty list of none, which JSON would have as null.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
