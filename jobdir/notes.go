package jobdir

import (
	"encoding/json"
	"fmt"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/reward"
)

// NotesFile is the name of proctor's own file in a trial directory. It lies
// beside the files that Harbor also writes and says what those have no place
// for.
const NotesFile = "proctor.json"

// Notes is the content of a trial's proctor.json. Fields may be added.
type Notes struct {
	// Schema is NotesSchema.
	Schema string `json:"schema"`
	// Attempt counts from 1; earlier attempts lie under attempts/.
	Attempt int `json:"attempt"`
	// Backend is the sandbox backend, SandboxID the name it gave.
	Backend   string `json:"backend"`
	SandboxID string `json:"sandbox_id,omitempty"`
	// ImageDigest is the content of the image that the sandbox was made of, "sha256:…";
	// empty where the backend has none, or does not tell.
	ImageDigest string `json:"image_digest,omitempty"`
	// AgentDigest is the content of the agent's code, "sha256:…": of its file, or of the
	// directory that was uploaded. It is empty where an agent is proctor's own, a command,
	// or a program of this machine.
	AgentDigest string `json:"agent_digest,omitempty"`
	// Runtime is what ran the backend's sandboxes, where there is a choice of that.
	Runtime string `json:"runtime,omitempty"`
	// Kept says how to get into the sandbox, which was stopped and left for people;
	// empty for one that was removed.
	Kept string `json:"kept,omitempty"`
	// Supervision is what supervised the sandbox's commands, one of the
	// Supervision constants of package sandbox; empty where the backend does not
	// tell. With "engine" proofs are worth what the engine's restart is.
	Supervision string `json:"supervision,omitempty"`
	// Errors are all errors of the trial in order; the result has the first.
	Errors []NotedError `json:"errors"`
	// AgentKilled tells what was done about the agent's processes after its
	// deadline, or before a sealed verifier; nil when it ended by itself. Of
	// several steps it is the last one's.
	AgentKilled *KillNote `json:"agent_killed,omitempty"`
	// AgentLeft tells what an agent that ended by itself left running while the
	// verifier worked, and what processes from before an agent that was ended have
	// started since; nil when there is nothing or it was not asked for.
	AgentLeft *LeftNote `json:"agent_left,omitempty"`
	// SealedVerifier: the trial was run with a sealed reward channel.
	SealedVerifier bool `json:"sealed_verifier"`
	// Hardened: the trial's sandboxes were hardened, see sandbox.Spec.
	Hardened bool `json:"hardened,omitempty"`
	// Verification is nil when the verifier did not start. Of several steps
	// it is the last one's, and Steps has all.
	Verification *VerificationNote  `json:"verification,omitempty"`
	Steps        []VerificationNote `json:"steps,omitempty"`
	// Episode tells how a task that is stepped was played; nil for others.
	Episode *EpisodeNote `json:"episode,omitempty"`
	// SetupFrom names the trial whose agent has installed what is in this one's sandbox, too;
	// empty where the agent did so itself, or needed nothing.
	SetupFrom string `json:"setup_from,omitempty"`
	// ReplayedFrom names the trial whose recorded answers of models the agent got; empty
	// for an agent that called a model, or none.
	ReplayedFrom string `json:"replayed_from,omitempty"`
	// Gateway tells of the calls of models that the agent's commands made through this
	// program; nil where they could not.
	Gateway *GatewayNote `json:"gateway,omitempty"`
	// Warnings that concern this trial.
	Warnings []string `json:"warnings,omitempty"`
}

// GatewayNote tells what an agent's commands asked of their model.
type GatewayNote struct {
	// Model is the name as it was configured.
	Model string `json:"model"`
	// Calls were answered, or given up when they were under way; what Uncounted of them used
	// was not told.
	Calls     int64 `json:"calls"`
	Uncounted int64 `json:"uncounted,omitempty"`
}

// EpisodeNote tells how an episode went.
type EpisodeNote struct {
	// Steps were taken, of MaxSteps that were allowed.
	Steps    int `json:"steps"`
	MaxSteps int `json:"max_steps"`
	// End is one of the Episode constants.
	End string `json:"end"`
	// Truncated: a limit ended the episode, not the task or the agent.
	Truncated bool `json:"truncated"`
}

// How episodes end.
const (
	EpisodeDone     = "done"      // the task has ended
	EpisodeStopped  = "stopped"   // by the agent
	EpisodeMaxSteps = "max_steps" // the limit of steps was reached
	EpisodeTimeout  = "timeout"   // the agent's time was up
	EpisodeBudget   = "budget"    // the budget for the agent's models was used up
	EpisodeFailed   = "failed"    // by an error
)

// NotesSchema names the format of proctor.json.
const NotesSchema = "proctor-trial-v1"

// NotedError is one error with the phase in which it happened.
type NotedError struct {
	Phase   string `json:"phase"`
	Type    string `json:"type"`
	Message string `json:"message"`
}

// KillNote tells how the agent's processes were ended.
type KillNote struct {
	// Reason is "deadline", "model" where the way to its model ended the agent, or
	// "sealed verifier".
	Reason string `json:"reason"`
	// ProvenGone is true when no process was left that is younger than the agent. When
	// it is false the verifier was not started, unless Notes.AgentLeft has what is left:
	// only processes that older ones have started, such as the workers of a service.
	ProvenGone bool   `json:"proven_gone"`
	Error      string `json:"error,omitempty"`
}

// LeftNote tells what an agent left running.
type LeftNote struct {
	Processes int `json:"processes"`
	// Names of some of them, as they call themselves.
	Names []string `json:"names"`
}

// VerificationNote is what the verification left besides the rewards.
type VerificationNote struct {
	// Step is empty for a single-step task.
	Step     string `json:"step,omitempty"`
	ExitCode int    `json:"exit_code"`
	// OutputCutBytes of test-stdout.txt were dropped.
	OutputCutBytes int64           `json:"output_cut_bytes"`
	RewardFiles    reward.Evidence `json:"reward_files"`
	// ChangedLater are the reward files at the trial's end, when they are not
	// those that the rewards were read from.
	ChangedLater []reward.File `json:"changed_later,omitempty"`
	// Suspicions say in words what the evidence shows, empty for nothing.
	Suspicions []string `json:"suspicions"`
}

// Verifications are those of all steps, in order; of a trial without steps the one.
func (n *Notes) Verifications() []VerificationNote {
	if len(n.Steps) == 0 && n.Verification != nil {
		return []VerificationNote{*n.Verification}
	}
	return n.Steps
}

// Suspicions are those of all verifications. Where there are steps, each names its own.
func (n *Notes) Suspicions() []string {
	var list []string
	for _, v := range n.Verifications() {
		for _, text := range v.Suspicions {
			if v.Step != "" {
				text = fmt.Sprintf("step %q: %s", v.Step, text)
			}
			list = append(list, text)
		}
	}
	return list
}

// maxNotes bounds proctor.json, in bytes.
const maxNotes = 16 << 20

// ReadNotes reads the proctor.json of a trial directory. The directory may be
// anybody's: no link is followed out of it. The error is [fs.ErrNotExist] where
// there is none, as in the trials of Harbor.
func ReadNotes(dir string) (Notes, error) {
	n, err := readNotes(dir)
	if err != nil {
		return Notes{}, fmt.Errorf("reading the notes of a trial: %w", err)
	}
	return n, nil
}

func readNotes(dir string) (n Notes, err error) {
	data, err := bounded.ReadIn(dir, NotesFile, maxNotes)
	if err != nil {
		return n, err
	}
	return parseNotes(data)
}

// ParseNotes reads the content of a proctor.json.
func ParseNotes(data []byte) (Notes, error) {
	n, err := parseNotes(data)
	if err != nil {
		return Notes{}, fmt.Errorf("reading the notes of a trial: %w", err)
	}
	return n, nil
}

func parseNotes(data []byte) (n Notes, err error) {
	if err := json.Unmarshal(data, &n); err != nil {
		return n, fmt.Errorf("reading %s: %w", NotesFile, err)
	}
	if n.Schema != NotesSchema {
		return n, fmt.Errorf("%s has the schema %q, want %q", NotesFile, n.Schema, NotesSchema)
	}
	return n, nil
}

// AppendJSON appends the text of the file.
func (n *Notes) AppendJSON(dst []byte) ([]byte, error) {
	data, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return dst, fmt.Errorf("writing %s: %w", NotesFile, err)
	}
	return append(append(dst, data...), '\n'), nil
}
