package atif

import (
	"github.com/proctor-run/proctor/value"
)

// Version is the version that files without schema_version have, and the newest
// there is. It never changes which members or rules apply.
const Version = "ATIF-v1.7"

// Source is who a step comes from.
type Source string

// The sources of steps.
const (
	System Source = "system"
	User   Source = "user"
	Agent  Source = "agent"
)

// A Trajectory is one run of an agent, or a part of one that is continued in
// another file.
type Trajectory struct {
	// SchemaVersion is ATIF-v1.0 to [Version]; empty text is written as Version.
	SchemaVersion string
	SessionID     *string
	// TrajectoryID is needed in embedded subagents.
	TrajectoryID *string
	Agent        AgentInfo
	// Steps holds at least one.
	Steps        []Step
	Notes        *string
	FinalMetrics *FinalMetrics
	// ContinuedTrajectoryRef is the file that continues this one, relative to it.
	ContinuedTrajectoryRef *string
	Extra                  *value.Object
	Subagents              []Trajectory
}

// AgentInfo names the agent of a trajectory.
type AgentInfo struct {
	Name, Version   string
	ModelName       *string
	ToolDefinitions []*value.Object
	Extra           *value.Object
}

// A Step is a message of the system, the user or the agent. ModelName,
// ReasoningEffort, ReasoningContent, ToolCalls and Metrics belong to steps of the
// agent alone.
type Step struct {
	// ID is the step's number, counted from 1 without gaps.
	ID int
	// Timestamp is ISO 8601 as Python's datetime.fromisoformat reads it.
	Timestamp *string
	Source    Source
	ModelName *string
	// ReasoningEffort is a [value.Str] or a [value.Float]; nil is absent.
	ReasoningEffort  value.Value
	Message          Content
	ReasoningContent *string
	ToolCalls        []ToolCall
	Observation      *Observation
	Metrics          *Metrics
	// IsCopiedContext marks a step that another trajectory holds already.
	IsCopiedContext *bool
	// LLMCallCount is how many model calls the step took; a step of the agent with
	// 0 has neither metrics nor reasoning.
	LLMCallCount *value.Int
	Extra        *value.Object
}

// Content is a text, or a list of parts where Parts is not nil.
type Content struct {
	Text  string
	Parts []Part
}

// Text returns content that is a text.
func Text(s string) Content { return Content{Text: s} }

// A Part is a text or an image.
type Part struct {
	// Type is "text" or "image".
	Type   string
	Text   *string
	Source *ImageSource
}

// The types of parts.
const (
	TextPart  = "text"
	ImagePart = "image"
)

// ImageSource is where an image is: a URL, or a path relative to the trajectory.
type ImageSource struct {
	// MediaType is image/jpeg, image/png, image/gif or image/webp.
	MediaType string
	Path      string
}

// A ToolCall is one use of a tool by the agent.
type ToolCall struct {
	ID           string
	FunctionName string
	Arguments    *value.Object
	Extra        *value.Object
}

// Observation is what followed a step's actions.
type Observation struct {
	Results []Result
}

// A Result is the result of one tool call, or of none in particular.
type Result struct {
	// SourceCallID is the ID of a tool call of the same step.
	SourceCallID *string
	Content      *Content
	Subagents    []SubagentRef
	Extra        *value.Object
}

// SubagentRef names the trajectory of a subagent: an embedded one by its id, or a
// file by its path. One of the two is there.
type SubagentRef struct {
	TrajectoryID, SessionID, TrajectoryPath *string
	Extra                                   *value.Object
}

// Metrics are the tokens and the cost of one step.
type Metrics struct {
	// PromptTokens include CachedTokens.
	PromptTokens, CompletionTokens, CachedTokens *value.Int
	// CostUSD is in US dollars.
	CostUSD                            *float64
	PromptTokenIDs, CompletionTokenIDs []value.Int
	// Logprobs are natural logarithms, one per completion token.
	Logprobs []float64
	Extra    *value.Object
}

// FinalMetrics are the totals of a run.
type FinalMetrics struct {
	PromptTokens, CompletionTokens, CachedTokens *value.Int
	// CostUSD is in US dollars.
	CostUSD *float64
	Steps   *value.Int
	Extra   *value.Object
}
