package journal

import (
	"encoding/json"
	"time"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/value"
)

// File is the name of proctor's own record in a job directory: one JSON
// object per line, only ever appended to. It says what was meant to be done
// before it is done, so that after a crash it is known what ran, what was made
// outside the directory, and from where on money was spent. docs/journal.md is
// its description.
const File = "journal.jsonl"

// Schema names the format of the journal. Entries that begin a run
// carry it.
const Schema = "proctor-journal-v1"

// Kind names what an entry of a journal tells. Readers keep entries of
// kinds that they do not know.
type Kind string

// The kinds. Those marked synced are on the disk before what they tell of goes
// on.
const (
	JobStarted     Kind = "job_started"     // synced
	InputsWritten  Kind = "inputs_written"  // what the job was asked to do is on the disk
	JobResumed     Kind = "job_resumed"     // synced; a start in a directory that has run before
	JobFinished    Kind = "job_finished"    // synced
	JobInterrupted Kind = "job_interrupted" // synced
	JobFailed      Kind = "job_failed"      // synced; proctor itself could not go on
	ResultWritten  Kind = "result_written"  // synced; the job's result was aggregated anew

	TrialStarted   Kind = "trial_started"   // synced; before anything of its sandbox is made
	SandboxCreated Kind = "sandbox_created" // labels find what was made before this is written
	SandboxRemoved Kind = "sandbox_removed"
	SandboxKept    Kind = "sandbox_kept"   // stopped and left, as was asked for
	AgentStarted   Kind = "agent_started"  // synced; from here on money is spent
	TrialFinished  Kind = "trial_finished" // synced; its result is on the disk
	TrialKept      Kind = "trial_kept"     // a result that a run found, whose trial no entry says to have ended
	SetAside       Kind = "set_aside"      // synced; before the attempt's files are moved
)

// Entry is one line of a journal. Fields that a kind has no use for are
// left out. Fields and kinds may be added.
type Entry struct {
	// Prev is the SHA-256 of the line before this one, in hex, with the end of that line;
	// the first one has none. So no line can be changed, left out or added without all
	// that follow.
	Prev string    `json:"prev,omitempty"`
	Time time.Time `json:"time"` // UTC
	Kind Kind      `json:"event"`

	// Of entries that begin a run of a job.
	Schema string `json:"schema,omitempty"`
	Job    string `json:"job,omitempty"` // id
	// Owner is the process, Host the name of its machine.
	Owner   *procid.ID `json:"owner,omitempty"`
	Host    string     `json:"host,omitempty"`
	Version string     `json:"version,omitempty"`
	// Config is the content of config.json, ConfigDigest its digest as the
	// file holds it.
	Config       json.RawMessage    `json:"config,omitempty"`
	ConfigDigest *jobdir.FileDigest `json:"config_file,omitempty"`
	// LockDigest is of lock.json, PolicyDigest of policy.json, as they were written.
	LockDigest   *jobdir.FileDigest `json:"lock_file,omitempty"`
	PolicyDigest *jobdir.FileDigest `json:"policy_file,omitempty"`
	Planned      int                `json:"n_trials,omitempty"`
	Remaining    int                `json:"n_remaining,omitempty"`
	// SealedVerifier: the run seals the reward channel, see trial.Runner.
	SealedVerifier bool `json:"sealed_verifier,omitempty"`
	// SecretNames are what the run keeps secret by name, see trial.Runner.
	SecretNames []string `json:"secret_names,omitempty"`
	// Hardened: the run's sandboxes are hardened, see sandbox.Spec.
	Hardened bool `json:"hardened,omitempty"`
	// Shared: a trial of the run begins when what its task asks for is free, see job.Room.
	Shared bool `json:"n_concurrent_auto,omitempty"`
	// Builds and Verifiers are how many trials of the run build, and verify, at a time; 0
	// for as many as run.
	Builds    int `json:"n_builds,omitempty"`
	Verifiers int `json:"n_verifiers,omitempty"`
	// ReplayModels is the directory whose recordings agents get in place of models, and
	// ReplayStrict refuses other requests than the recorded ones; empty for none.
	ReplayModels string `json:"replay_models,omitempty"`
	ReplayStrict bool   `json:"replay_strict,omitempty"`

	// Of entries that concern a trial.
	Trial   string `json:"trial,omitempty"`
	Task    string `json:"task,omitempty"`
	Attempt int    `json:"attempt,omitempty"` // counts from 1
	// Plan is the digest of what the trial's configuration asks for.
	Plan string `json:"plan,omitempty"`

	// Backend made the sandbox, or all sandboxes of a run; Sandbox is what it
	// calls it.
	Backend string `json:"backend,omitempty"`
	Sandbox string `json:"sandbox,omitempty"`
	// Runtime, of entries that begin a run, is what ran the backend's sandboxes where
	// there is a choice of that.
	Runtime string `json:"runtime,omitempty"`

	// ResultDigest is of result.json, the trial's or the job's.
	ResultDigest *jobdir.FileDigest `json:"result_file,omitempty"`
	// NotesDigest is of the trial's proctor.json, Suspicions the number of those in it.
	NotesDigest  *jobdir.FileDigest `json:"notes_file,omitempty"`
	Suspicions   int                `json:"suspicions,omitempty"`
	Exception    string             `json:"exception,omitempty"`
	Rewarded     bool               `json:"rewarded,omitempty"`
	CostUSD      *float64           `json:"cost_usd,omitempty"`
	InputTokens  json.Number        `json:"input_tokens,omitempty"`
	OutputTokens json.Number        `json:"output_tokens,omitempty"`

	// Reason says in words why.
	Reason string `json:"reason,omitempty"`
}

// maxLine bounds one line, in bytes with its end. Only a configuration
// can be long, and one that does not fit is left out.
const maxLine = 1 << 20

// line is the entry as it is written.
func (e Entry) line() ([]byte, error) {
	data, err := json.Marshal(e)
	if err == nil && len(data) >= maxLine && e.Config != nil {
		e.Config = nil
		data, err = json.Marshal(e)
	}
	return append(data, '\n'), err
}

// Usage is what a trial consumed, as [Entry.Spent] noted it.
func (e *Entry) Usage() jobdir.Usage {
	u := jobdir.Usage{CostUSD: e.CostUSD}
	for _, n := range []struct {
		text json.Number
		to   **value.Int
	}{{e.InputTokens, &u.NInputTokens}, {e.OutputTokens, &u.NOutputTokens}} {
		if read, err := value.ParseInt(string(n.text)); err == nil {
			*n.to = &read
		}
	}
	return u
}

// Spent says what a trial consumed.
func (e *Entry) Spent(u jobdir.Usage) {
	e.CostUSD = u.CostUSD
	if u.NInputTokens != nil {
		e.InputTokens = json.Number(u.NInputTokens.String())
	}
	if u.NOutputTokens != nil {
		e.OutputTokens = json.Number(u.NOutputTokens.String())
	}
}
