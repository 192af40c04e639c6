package atif

import (
	"github.com/proctor-run/proctor/value"
)

// Object returns the document of a trajectory: members in the order of the
// format, none that is absent.
func (t *Trajectory) Object() *value.Object {
	o := value.NewObject(10)
	version := t.SchemaVersion
	if version == "" {
		version = Version
	}
	o.Set("schema_version", value.Str(version))
	setText(o, "session_id", t.SessionID)
	setText(o, "trajectory_id", t.TrajectoryID)
	o.Set("agent", t.Agent.object())
	o.Set("steps", listOf(t.Steps, (*Step).object))
	setText(o, "notes", t.Notes)
	if t.FinalMetrics != nil {
		o.Set("final_metrics", t.FinalMetrics.object())
	}
	setText(o, "continued_trajectory_ref", t.ContinuedTrajectoryRef)
	setObject(o, "extra", t.Extra)
	if t.Subagents != nil {
		o.Set("subagent_trajectories", listOf(t.Subagents, (*Trajectory).Object))
	}
	return o
}

func (a *AgentInfo) object() *value.Object {
	o := value.NewObject(5)
	o.Set("name", value.Str(a.Name))
	o.Set("version", value.Str(a.Version))
	setText(o, "model_name", a.ModelName)
	if a.ToolDefinitions != nil {
		o.Set("tool_definitions", toolList(a.ToolDefinitions))
	}
	setObject(o, "extra", a.Extra)
	return o
}

func toolList(tools []*value.Object) value.List {
	list := make(value.List, len(tools))
	for i, d := range tools {
		list[i] = d
	}
	return list
}

func (s *Step) object() *value.Object {
	o := value.NewObject(8)
	o.Set("step_id", value.NewInt(int64(s.ID)))
	setText(o, "timestamp", s.Timestamp)
	o.Set("source", value.Str(s.Source))
	setText(o, "model_name", s.ModelName)
	if s.ReasoningEffort != nil {
		o.Set("reasoning_effort", s.ReasoningEffort)
	}
	o.Set("message", s.Message.value())
	setText(o, "reasoning_content", s.ReasoningContent)
	if s.ToolCalls != nil {
		o.Set("tool_calls", listOf(s.ToolCalls, (*ToolCall).object))
	}
	if s.Observation != nil {
		results := value.NewObject(1)
		results.Set("results", listOf(s.Observation.Results, (*Result).object))
		o.Set("observation", results)
	}
	if s.Metrics != nil {
		o.Set("metrics", s.Metrics.object())
	}
	if s.IsCopiedContext != nil {
		o.Set("is_copied_context", value.Bool(*s.IsCopiedContext))
	}
	setInt(o, "llm_call_count", s.LLMCallCount)
	setObject(o, "extra", s.Extra)
	return o
}

func (c Content) value() value.Value {
	if c.Parts == nil {
		return value.Str(c.Text)
	}
	return listOf(c.Parts, (*Part).object)
}

func (p *Part) object() *value.Object {
	o := value.NewObject(2)
	o.Set("type", value.Str(p.Type))
	setText(o, "text", p.Text)
	if p.Source != nil {
		source := value.NewObject(2)
		source.Set("media_type", value.Str(p.Source.MediaType))
		source.Set("path", value.Str(p.Source.Path))
		o.Set("source", source)
	}
	return o
}

func (c *ToolCall) object() *value.Object {
	o := value.NewObject(4)
	o.Set("tool_call_id", value.Str(c.ID))
	o.Set("function_name", value.Str(c.FunctionName))
	if c.Arguments == nil {
		o.Set("arguments", value.NewObject(0))
	} else {
		o.Set("arguments", c.Arguments)
	}
	setObject(o, "extra", c.Extra)
	return o
}

func (r *Result) object() *value.Object {
	o := value.NewObject(2)
	setText(o, "source_call_id", r.SourceCallID)
	if r.Content != nil {
		o.Set("content", r.Content.value())
	}
	if r.Subagents != nil {
		o.Set("subagent_trajectory_ref", listOf(r.Subagents, (*SubagentRef).object))
	}
	setObject(o, "extra", r.Extra)
	return o
}

func (r *SubagentRef) object() *value.Object {
	o := value.NewObject(2)
	setText(o, "trajectory_id", r.TrajectoryID)
	setText(o, "session_id", r.SessionID)
	setText(o, "trajectory_path", r.TrajectoryPath)
	setObject(o, "extra", r.Extra)
	return o
}

func (m *Metrics) object() *value.Object {
	o := value.NewObject(5)
	setInt(o, "prompt_tokens", m.PromptTokens)
	setInt(o, "completion_tokens", m.CompletionTokens)
	setInt(o, "cached_tokens", m.CachedTokens)
	setFloat(o, "cost_usd", m.CostUSD)
	setInts(o, "prompt_token_ids", m.PromptTokenIDs)
	setInts(o, "completion_token_ids", m.CompletionTokenIDs)
	if m.Logprobs != nil {
		o.Set("logprobs", floatList(m.Logprobs))
	}
	setObject(o, "extra", m.Extra)
	return o
}

func (m *FinalMetrics) object() *value.Object {
	o := value.NewObject(5)
	setInt(o, "total_prompt_tokens", m.PromptTokens)
	setInt(o, "total_completion_tokens", m.CompletionTokens)
	setInt(o, "total_cached_tokens", m.CachedTokens)
	setFloat(o, "total_cost_usd", m.CostUSD)
	setInt(o, "total_steps", m.Steps)
	setObject(o, "extra", m.Extra)
	return o
}

func listOf[T any](items []T, object func(*T) *value.Object) value.List {
	list := make(value.List, len(items))
	for i := range items {
		list[i] = object(&items[i])
	}
	return list
}

func intList(ids []value.Int) value.List {
	list := make(value.List, len(ids))
	for i, id := range ids {
		list[i] = id
	}
	return list
}

func floatList(xs []float64) value.List {
	list := make(value.List, len(xs))
	for i, x := range xs {
		list[i] = value.Float(x)
	}
	return list
}

func setText(o *value.Object, key string, s *string) {
	if s != nil {
		o.Set(key, value.Str(*s))
	}
}

func setInt(o *value.Object, key string, n *value.Int) {
	if n != nil {
		o.Set(key, *n)
	}
}

func setFloat(o *value.Object, key string, x *float64) {
	if x != nil {
		o.Set(key, value.Float(*x))
	}
}

func setInts(o *value.Object, key string, ids []value.Int) {
	if ids != nil {
		o.Set(key, intList(ids))
	}
}

func setObject(o *value.Object, key string, x *value.Object) {
	if x != nil {
		o.Set(key, x)
	}
}
