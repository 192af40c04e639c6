package jobdir

import (
	"github.com/google/uuid"

	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// Result is the content of a job's result.json (Harbor job
// format, section 5.1).
type Result struct {
	ID           uuid.UUID
	StartedAt    Time // naive local
	UpdatedAt    *Time
	FinishedAt   *Time // nil while the job runs
	NTotalTrials int
	Stats        Stats
}

// Stats counts and aggregates the trials of a job.
type Stats struct {
	NCompletedTrials int // finished, errored ones included
	NErroredTrials   int
	NRunningTrials   int
	NPendingTrials   int
	NCancelledTrials int
	NRetries         int
	Evals            schema.Map[*Eval] // by [Record.EvalsKey], in order of first trial
	Usage            Usage
}

// Eval counts and aggregates one group of trials: same agent, model and
// dataset.
type Eval struct {
	NTrials        int // trials with rewards
	NErrors        int // trials with an exception; both may count the same trial
	Metrics        []*value.Object
	PassAtK        []reward.PassAtK
	RewardStats    reward.Stats         // which trials got which reward
	ExceptionStats schema.Map[[]string] // trial names by exception type
}
