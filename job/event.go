package job

import (
	"time"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/trial"
)

// EventKind names what an Event reports.
type EventKind string

// The kinds of events of a job.
const (
	EventJobStart EventKind = "job_start"
	EventTrial    EventKind = "trial"   // Trial says what happened
	EventRetry    EventKind = "retry"   // a trial will be attempted again; Retry and Message say why
	EventWarning  EventKind = "warning" // Message says what is wrong but does not stop the job
	EventJobEnd   EventKind = "job_end"
	// EventWait: a trial does not begin yet, see [Room]; Waiting is the trial, and Message
	// says what is short.
	EventWait EventKind = "wait"
	// EventInstall, before the job starts: Message says what is installed of an agent.
	EventInstall EventKind = "install"
)

// Event is one thing that happened to a job. Events come one at a time, in the
// order in which things happened.
type Event struct {
	Kind    EventKind
	Time    time.Time
	JobName string
	Trial   *trial.Event // for EventTrial
	Retry   *Retry       // for EventRetry
	Waiting *Waiting     // for EventWait
	Message string
	// Progress is how the job stands after the event.
	Progress Progress
	// Statistics of all trials that ended, for EventJobEnd alone.
	Statistics *score.Statistics
	// Models is what their models were used for, for EventJobEnd alone.
	Models *score.ModelUse
	// Records are these trials in their final order, unless the job was interrupted.
	Records []jobdir.Record
}

// Retry is a trial that will be attempted again.
type Retry struct {
	TrialName, TaskName string
	// Attempt that ended, counted from 1, with an exception of ExceptionType.
	Attempt       int
	ExceptionType string
	Wait          time.Duration // until the next attempt
}

// Waiting is a trial that waits for its turn.
type Waiting struct {
	TrialName, TaskName string
	Attempt             int // counts from 1
}

// Progress counts a job's trials.
type Progress struct {
	Total, Running, Pending int
	// Ended counts the trials that have ended, by outcome.
	Ended score.Counts
	// Metrics are the live metrics of each group, in order.
	Metrics []GroupMetric
	// Spent is what the calls of models used so far that went through the job, and what is
	// known of its earlier runs.
	Spent llm.Spent
}

// GroupMetric is one number of one group of trials with how many trials it
// rests on.
type GroupMetric struct {
	Group string // key of evals: agent__model__dataset
	Name  string // "mean", or the reward's key when there are several
	Value string // as text
	N     int    // trials that ended, each counted in the metric
	// NScored of them have rewards; the others count as 0.
	NScored int
}
