package jobdir

import (
	"strings"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// TrialResult is the content of a trial's result.json (Harbor job
// format, section 5.1). Nil pointers and nil lists are written as null.
type TrialResult struct {
	ID           uuid.UUID
	TaskName     string
	TrialName    string
	TrialURI     string // see [URI]
	TaskID       TaskID
	Source       *string // dataset name; nil for a task given by itself
	TaskChecksum string
	Config       TrialConfig

	AgentInfo      AgentInfo
	AgentResult    *AgentResult
	VerifierResult *VerifierResult
	ExceptionInfo  *ExceptionInfo

	// Times are UTC. A phase that was never entered is nil; an entered phase
	// has both ends.
	StartedAt        *Time
	FinishedAt       *Time
	EnvironmentSetup *Timing
	AgentSetup       *Timing
	AgentExecution   *Timing
	Verifier         *Timing

	// StepResults holds one entry per started step of a multi-step task; nil
	// for a single-step task. Nil and empty are written differently.
	StepResults []StepResult
}

// TaskID identifies the task of a result. Kind tells which fields hold.
type TaskID struct {
	Kind        TaskKind
	Path        string  // local and git
	GitURL      string  // git
	GitCommitID *string // git
	Org, Name   string  // package
	Ref         *string // package
}

// ID returns the identity of a task as results record it.
func (t TaskConfig) ID() TaskID {
	switch t.Kind() {
	case PackageTask:
		org, name, _ := strings.Cut(*t.Name, "/")
		return TaskID{Kind: PackageTask, Org: org, Name: name, Ref: t.Ref}
	case GitTask:
		return TaskID{Kind: GitTask, GitURL: *t.GitURL, GitCommitID: t.GitCommitID, Path: orEmpty(t.Path)}
	default:
		return TaskID{Kind: LocalTask, Path: orEmpty(t.Path)}
	}
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// AgentInfo names the agent that ran.
type AgentInfo struct {
	Name      string
	Version   string // UnknownVersion if the agent has none
	ModelInfo *ModelInfo
}

// UnknownVersion stands for the version of an agent that does not tell.
const UnknownVersion = "unknown"

// ModelInfo names the model that an agent used.
type ModelInfo struct {
	Name     string
	Provider *string
}

// SplitModel splits a configured model name at its first slash into provider
// and name: "a/b/c" is model "b/c" of provider "a". Without a slash there is
// no provider; an empty name, also behind a slash, gives nil.
func SplitModel(model string) *ModelInfo {
	provider, name, ok := strings.Cut(model, "/")
	switch {
	case !ok && model != "":
		return &ModelInfo{Name: model}
	case name == "":
		return nil
	}
	return &ModelInfo{Name: name, Provider: &provider}
}

// AgentResult is what an agent reports about its work. All fields are optional.
type AgentResult struct {
	NInputTokens   *value.Int
	NCacheTokens   *value.Int
	NOutputTokens  *value.Int
	CostUSD        *float64
	RolloutDetails value.List    // token ids and log probabilities per turn; nil is null
	Metadata       *value.Object // nil is null
}

// VerifierResult holds the rewards of a verification. Rewards may be nil: the
// verifier wrote null, which is not the same as no result.
type VerifierResult struct {
	Rewards *reward.Rewards
}

// Failure is the exception of the trial, or else that of its first step with one, which
// is then named; nil for none.
func (r *TrialResult) Failure() (info *ExceptionInfo, step string) {
	if r.ExceptionInfo != nil {
		return r.ExceptionInfo, ""
	}
	if s := r.failedStep(); s != nil {
		return s.ExceptionInfo, s.StepName
	}
	return nil, ""
}

// failedStep is the first step with an exception; nil for none.
func (r *TrialResult) failedStep() *StepResult {
	for i := range r.StepResults {
		if r.StepResults[i].ExceptionInfo != nil {
			return &r.StepResults[i]
		}
	}
	return nil
}

// ExceptionInfo is the first exception of a trial or step, under the type name
// that Harbor would record (Harbor job format, section 3.5).
type ExceptionInfo struct {
	Type       string
	Message    string
	Traceback  string // free text, by convention ending in "<Type>: <message>\n"
	OccurredAt Time   // naive local time
}

// Timing is when a phase began and ended.
type Timing struct {
	StartedAt  *Time
	FinishedAt *Time
}

// StepResult is the result of one step of a multi-step task.
type StepResult struct {
	StepName       string
	AgentResult    *AgentResult
	VerifierResult *VerifierResult
	ExceptionInfo  *ExceptionInfo
	AgentExecution *Timing
	Verifier       *Timing
}

// URI returns the file URI of a trial directory given by its absolute path.
// Every byte but letters, digits and "_.-~/" is percent-encoded.
func URI(dir string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.WriteString("file://")
	for i := range len(dir) {
		c := dir[i]
		if isUnreserved(c) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}

func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_.-~/", c) >= 0
}
