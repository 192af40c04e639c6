package trial

import (
	"time"

	"github.com/proctor-run/proctor/jobdir"
)

// EventKind names a point in a trial's life (Harbor job format, section 3.4).
type EventKind string

// The kinds, in the order in which a trial goes through them. Every trial
// that starts also ends; EventCancel comes just before the end of a cancelled
// one.
const (
	EventStart             EventKind = "start"
	EventEnvironmentStart  EventKind = "environment_start"
	EventAgentSetupStart   EventKind = "agent_setup_start" // proctor's own
	EventAgentStart        EventKind = "agent_start"
	EventVerificationStart EventKind = "verification_start"
	EventCancel            EventKind = "cancel"
	EventEnd               EventKind = "end"
	// EventProgress reports something long inside a phase, such as an image
	// being pulled; Message describes it. Proctor's own.
	EventProgress EventKind = "progress"
)

// Event is one thing that happened to a trial.
type Event struct {
	Kind      EventKind
	Time      time.Time
	TrialName string
	TaskName  string
	// Attempt counts from 1.
	Attempt int
	Message string
	// Result is set for EventEnd alone; it no longer changes.
	Result *jobdir.TrialResult
	// ResultFile is the digest of result.json, for EventEnd; nil when it could
	// not be written.
	ResultFile *jobdir.FileDigest
	// NotesFile is the same of proctor.json, and Suspicions the number of those in it.
	NotesFile  *jobdir.FileDigest
	Suspicions int
}
