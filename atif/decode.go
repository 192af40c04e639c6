package atif

import (
	"fmt"

	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// Parse reads a trajectory from the bytes of a file. The error is an [*Invalid].
func Parse(data []byte) (*Trajectory, error) {
	v, err := ParseJSON(data)
	if err != nil {
		return nil, err
	}
	return Decode(v)
}

// ParseJSON reads the document of a file, which need not be a trajectory. The
// error is an [*Invalid].
func ParseJSON(data []byte) (value.Value, error) {
	v, err := value.Decode(data)
	if err != nil {
		return nil, invalid("Invalid JSON: " + err.Error())
	}
	return v, nil
}

// Decode reads a trajectory from a document. The error is an [*Invalid].
func Decode(v value.Value) (*Trajectory, error) {
	if _, ok := v.(*value.Object); !ok {
		return nil, invalid("Trajectory must be a JSON object/dict")
	}
	return decodeFrom(v, 1)
}

// decodeFrom is Decode of a document whose first step has this number.
func decodeFrom(v value.Value, first int) (*Trajectory, error) {
	t, _, err := schema.Validate(v, trajectoryFrom(first))
	if err != nil {
		return nil, asInvalid(err)
	}
	return &t, nil
}

// versions are the values of schema_version (section 6.1).
var versions = []string{"ATIF-v1.0", "ATIF-v1.1", "ATIF-v1.2", "ATIF-v1.3", "ATIF-v1.4", "ATIF-v1.5", "ATIF-v1.6", Version}

var (
	sourceOf  = schema.Literal(System, User, Agent)
	versionOf = schema.Literal(versions...)
	partType  = schema.Literal(TextPart, ImagePart)
	mediaType = schema.Literal("image/jpeg", "image/png", "image/gif", "image/webp")

	toolDefinitions = schema.List(schema.Object)
	tokenIDs        = schema.List(schema.Int)
	logprobs        = schema.List(schema.Float)

	imageSource = schema.Closed("ImageSource", func(f *schema.Fields) ImageSource {
		return ImageSource{
			MediaType: schema.Required(f, "media_type", mediaType),
			Path:      schema.Required(f, "path", schema.Str),
		}
	})
	part = schema.After(schema.Closed("ContentPart", func(f *schema.Fields) Part {
		return Part{
			Type:   schema.Required(f, "type", partType),
			Text:   schema.Optional(f, "text", schema.Str),
			Source: schema.Optional(f, "source", imageSource),
		}
	}), checkPart)
	content = schema.Union(
		schema.As("str", schema.Str, Text),
		schema.As("list[function-after[validate_content_type(), ContentPart]]", schema.List(part), func(p []Part) Content { return Content{Parts: p} }),
	)
	effort = schema.Union(
		schema.As("str", schema.Str, func(s string) value.Value { return value.Str(s) }),
		schema.As("float", schema.Float, func(x float64) value.Value { return value.Float(x) }),
	)
	toolCall = schema.Closed("ToolCall", func(f *schema.Fields) ToolCall {
		return ToolCall{
			ID:           schema.Required(f, "tool_call_id", schema.Str),
			FunctionName: schema.Required(f, "function_name", schema.Str),
			Arguments:    schema.Required(f, "arguments", schema.Object),
			Extra:        object(f),
		}
	})
	subagentRef = schema.After(schema.Closed("SubagentTrajectoryRef", func(f *schema.Fields) SubagentRef {
		return SubagentRef{
			TrajectoryID:   schema.Optional(f, "trajectory_id", schema.Str),
			SessionID:      schema.Optional(f, "session_id", schema.Str),
			TrajectoryPath: schema.Optional(f, "trajectory_path", schema.Str),
			Extra:          object(f),
		}
	}), checkRef)
	result = schema.Closed("ObservationResult", func(f *schema.Fields) Result {
		return Result{
			SourceCallID: schema.Optional(f, "source_call_id", schema.Str),
			Content:      schema.Optional(f, "content", content),
			Subagents:    schema.OptionalList(f, "subagent_trajectory_ref", schema.List(subagentRef)),
			Extra:        object(f),
		}
	})
	observation = schema.Closed("Observation", func(f *schema.Fields) Observation {
		return Observation{Results: schema.Required(f, "results", schema.List(result))}
	})
	metrics = schema.Closed("Metrics", func(f *schema.Fields) Metrics {
		return Metrics{
			PromptTokens:       schema.Optional(f, "prompt_tokens", schema.Int),
			CompletionTokens:   schema.Optional(f, "completion_tokens", schema.Int),
			CachedTokens:       schema.Optional(f, "cached_tokens", schema.Int),
			CostUSD:            schema.Optional(f, "cost_usd", schema.Float),
			PromptTokenIDs:     schema.OptionalList(f, "prompt_token_ids", tokenIDs),
			CompletionTokenIDs: schema.OptionalList(f, "completion_token_ids", tokenIDs),
			Logprobs:           schema.OptionalList(f, "logprobs", logprobs),
			Extra:              object(f),
		}
	})
	finalMetrics = schema.Closed("FinalMetrics", func(f *schema.Fields) FinalMetrics {
		return FinalMetrics{
			PromptTokens:     schema.Optional(f, "total_prompt_tokens", schema.Int),
			CompletionTokens: schema.Optional(f, "total_completion_tokens", schema.Int),
			CachedTokens:     schema.Optional(f, "total_cached_tokens", schema.Int),
			CostUSD:          schema.Optional(f, "total_cost_usd", schema.Float),
			Steps:            schema.Optional(f, "total_steps", atLeast(0)),
			Extra:            object(f),
		}
	})
	agentInfo = schema.Closed("Agent", func(f *schema.Fields) AgentInfo {
		return AgentInfo{
			Name:            schema.Required(f, "name", schema.Str),
			Version:         schema.Required(f, "version", schema.Str),
			ModelName:       schema.Optional(f, "model_name", schema.Str),
			ToolDefinitions: schema.OptionalList(f, "tool_definitions", toolDefinitions),
			Extra:           object(f),
		}
	})
	step = schema.After(schema.After(schema.Closed("Step", stepFields), checkAgentOnly), checkWithoutCalls)
)

// numberedStep is a step whose number is not yet known to be its place.
type numberedStep struct {
	Step
	number value.Int
}

// MetricsOf reads the metrics of a step that need not keep the rules of the format; nil
// where it has none that can be read.
func MetricsOf(step value.Value) *Metrics {
	return memberOf(step, "metrics", metrics)
}

// SubagentsOf reads what a step that need not keep the rules of the format says of the
// trajectories of subagents; nil where it says nothing that can be read.
func SubagentsOf(step value.Value) []SubagentRef {
	return memberOf(step, "observation", observation).subagents()
}

// Subagents are the trajectories of subagents that the step names.
func (s *Step) Subagents() []SubagentRef { return s.Observation.subagents() }

func (o *Observation) subagents() []SubagentRef {
	if o == nil {
		return nil
	}
	var all []SubagentRef
	for i := range o.Results {
		all = append(all, o.Results[i].Subagents...)
	}
	return all
}

// memberOf reads one member of a step; nil where it cannot be read.
func memberOf[T any](step value.Value, name string, kind schema.Decoder[T]) *T {
	o, ok := step.(*value.Object)
	if !ok {
		return nil
	}
	v, ok := o.Get(name)
	if !ok {
		return nil
	}
	m, _, err := schema.Validate(v, kind)
	if err != nil {
		return nil
	}
	return &m
}

func stepFields(f *schema.Fields) numberedStep {
	return numberedStep{
		number: schema.Required(f, "step_id", atLeast(1)),
		Step: Step{
			Timestamp:        schema.Optional(f, "timestamp", schema.After(schema.Str, checkTimestamp)),
			Source:           schema.Required(f, "source", sourceOf),
			ModelName:        schema.Optional(f, "model_name", schema.Str),
			ReasoningEffort:  schema.Default(f, "reasoning_effort", nil, orNil(effort)),
			Message:          schema.Required(f, "message", content),
			ReasoningContent: schema.Optional(f, "reasoning_content", schema.Str),
			ToolCalls:        schema.OptionalList(f, "tool_calls", schema.List(toolCall)),
			Observation:      schema.Optional(f, "observation", observation),
			Metrics:          schema.Optional(f, "metrics", metrics),
			IsCopiedContext:  schema.Optional(f, "is_copied_context", schema.Bool),
			LLMCallCount:     schema.Optional(f, "llm_call_count", atLeast(0)),
			Extra:            object(f),
		},
	}
}

// trajectory is a function because trajectories nest.
func trajectory(c *schema.Cursor, v value.Value) (Trajectory, bool) {
	return trajectoryFrom(1)(c, v)
}

// trajectoryFrom reads one whose first step has this number.
func trajectoryFrom(first int) schema.Decoder[Trajectory] {
	return func(c *schema.Cursor, v value.Value) (Trajectory, bool) {
		var numbers []value.Int
		return schema.After(schema.Closed("Trajectory", func(f *schema.Fields) Trajectory {
			t := Trajectory{
				SchemaVersion: schema.Default(f, "schema_version", Version, versionOf),
				SessionID:     schema.Optional(f, "session_id", schema.Str),
				TrajectoryID:  schema.Optional(f, "trajectory_id", schema.Str),
				Agent:         schema.Required(f, "agent", agentInfo),
			}
			for _, s := range schema.Required(f, "steps", steps) {
				t.Steps = append(t.Steps, s.Step)
				numbers = append(numbers, s.number)
			}
			t.Notes = schema.Optional(f, "notes", schema.Str)
			t.FinalMetrics = schema.Optional(f, "final_metrics", finalMetrics)
			t.ContinuedTrajectoryRef = schema.Optional(f, "continued_trajectory_ref", schema.Str)
			t.Extra = object(f)
			t.Subagents = schema.OptionalList(f, "subagent_trajectories", schema.List(trajectory))
			return t
		}), func(t Trajectory) (Trajectory, error) {
			if err := numberSteps(t.Steps, numbers, first); err != nil {
				return t, err
			}
			return t, checkTrajectory(&t)
		})(c, v)
	}
}

// steps is a list of at least one.
func steps(c *schema.Cursor, v value.Value) ([]numberedStep, bool) {
	if list, ok := v.(value.List); ok && len(list) == 0 {
		c.Fail("too_short", "List should have at least 1 item after validation, not 0", v)
		return nil, false
	}
	return schema.List(step)(c, v)
}

// object is the member "extra" that most objects have.
func object(f *schema.Fields) *value.Object {
	return schema.Default(f, "extra", nil, func(c *schema.Cursor, v value.Value) (*value.Object, bool) {
		if value.IsNull(v) {
			return nil, true
		}
		return schema.Object(c, v)
	})
}

func orNil(d schema.Decoder[value.Value]) schema.Decoder[value.Value] {
	return func(c *schema.Cursor, v value.Value) (value.Value, bool) {
		if value.IsNull(v) {
			return nil, true
		}
		return d(c, v)
	}
}

// atLeast is an int of any size with a lower bound.
func atLeast(bound int64) schema.Decoder[value.Int] {
	return func(c *schema.Cursor, v value.Value) (value.Int, bool) {
		n, ok := schema.Int(c, v)
		if ok && n.Cmp(value.NewInt(bound)) < 0 {
			c.Fail("greater_than_equal", fmt.Sprintf("Input should be greater than or equal to %d", bound), v)
			return n, false
		}
		return n, ok
	}
}
