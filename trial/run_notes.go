package trial

import (
	"encoding/json"
	"path/filepath"

	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/verify"
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
	// Errors are all errors of the trial in order; the result has the first.
	Errors []NotedError `json:"errors"`
	// AgentKilled tells what was done about the agent's processes after its
	// deadline; nil when it ended by itself.
	AgentKilled *KillNote `json:"agent_killed,omitempty"`
	// Verification is nil when the verifier did not start.
	Verification *VerificationNote `json:"verification,omitempty"`
	// Warnings that concern this trial.
	Warnings []string `json:"warnings,omitempty"`
}

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
	// ProvenGone is true when no process of the agent was left. When it is
	// false, the verifier was not started.
	ProvenGone bool   `json:"proven_gone"`
	Error      string `json:"error,omitempty"`
}

// VerificationNote is what the verification left besides the rewards.
type VerificationNote struct {
	ExitCode int `json:"exit_code"`
	// OutputCutBytes of test-stdout.txt were dropped.
	OutputCutBytes int64           `json:"output_cut_bytes"`
	RewardFiles    verify.Evidence `json:"reward_files"`
	// Suspicions say in words what the evidence shows, empty for nothing.
	Suspicions []string `json:"suspicions"`
}

func (n *Notes) write(dir string) error {
	data, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteUnsynced(filepath.Join(dir, NotesFile), append(data, '\n'), 0o644)
}

// suspicions reads the evidence. It judges nothing: a task may well leave a
// reward file before its tests run.
func suspicions(e verify.Evidence) []string {
	found := []string{}
	for _, before := range e.Before {
		what := before.Name + " existed before the verifier started"
		for _, after := range e.After {
			if after == before {
				what += " and was not changed by it"
			}
		}
		found = append(found, what)
	}
	for _, f := range e.After {
		if f.Kind == "link" {
			found = append(found, f.Name+" is a symbolic link")
		}
		if f.Links > 1 {
			found = append(found, f.Name+" has more than one name")
		}
	}
	return found
}
