package jobdir

import "github.com/proctor-run/proctor/internal/bounded"

// Bounds of what is read of files in a job directory, in bytes. Those of the job itself
// grow with its trials: that of a million is smaller. Those of a trial grow with what
// its agent reported.
const (
	MaxJobFile   = 1 << 30
	MaxTrialFile = 256 << 20
)

// ModelCallsFile is what models answered a trial's agent, in the agent's directory: a
// recording of package llm.
const ModelCallsFile = "model-calls.jsonl"

// StepsFile is the log of an episode, in the agent's directory: one JSON object per turn of a
// task that is stepped.
const StepsFile = "steps.jsonl"

// EgressLog is the file in a trial's directory that records, one JSON object per line, the
// requests of its sandboxes to the egress proxy (egress.Line). It is there when a
// sandbox had an allow list, or a network that was switched.
const EgressLog = "egress.jsonl"

// MaxModelCalls bounds the files of that name that belong to one trial, in bytes.
const MaxModelCalls = 64 << 20

// ReadJobFile reads a file of the job in its directory, which may be a stranger's: a
// regular one of at most [MaxJobFile] bytes that no link leads to from outside. Errors
// name the file; fs.ErrNotExist is for none.
func ReadJobFile(dir, name string) ([]byte, error) { return bounded.ReadIn(dir, name, MaxJobFile) }

// ReadTrialFile reads a file of a trial, by its name below the directory of the job or
// of the trial, as [ReadJobFile] does; at most [MaxTrialFile] bytes.
func ReadTrialFile(dir, name string) ([]byte, error) { return bounded.ReadIn(dir, name, MaxTrialFile) }
