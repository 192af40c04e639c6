package jobdir

import (
	"fmt"
	"math"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// ParseResult reads a trial's result.json. The error for an invalid document
// is a *schema.Errors holding every problem.
//
// A reward that is null is read as nan: that is how a nan or infinite reward
// is written, and the reference cannot load such a file again (Harbor job
// format, section 5.2).
func ParseTrialResult(data []byte) (TrialResult, error) {
	v, err := value.Decode(data)
	if err != nil {
		return TrialResult{}, fmt.Errorf("reading trial result: %w", err)
	}
	r, _, err := schema.Validate(v, decodeTrialResult)
	return r, err
}

// DecodeResult validates a trial result.
func decodeTrialResult(c *schema.Cursor, v value.Value) (TrialResult, bool) {
	return schema.Model("TrialResult", trialResultFields)(c, v)
}

func trialResultFields(f *schema.Fields) TrialResult {
	return TrialResult{
		ID:               schema.Default(f, "id", uuid.UUID{}, decodeUUID),
		TaskName:         schema.Required(f, "task_name", schema.Str),
		TrialName:        schema.Required(f, "trial_name", schema.Str),
		TrialURI:         schema.Required(f, "trial_uri", schema.Str),
		TaskID:           schema.Required(f, "task_id", decodeTaskID),
		Source:           schema.Optional(f, "source", schema.Str),
		TaskChecksum:     schema.Required(f, "task_checksum", schema.Str),
		Config:           schema.Required(f, "config", DecodeTrialConfig),
		AgentInfo:        schema.Required(f, "agent_info", schema.Model("AgentInfo", agentInfoFields)),
		AgentResult:      schema.Optional(f, "agent_result", decodeAgentResult),
		VerifierResult:   schema.Optional(f, "verifier_result", decodeVerifierResult),
		ExceptionInfo:    schema.Optional(f, "exception_info", decodeException),
		StartedAt:        schema.Optional(f, "started_at", decodeTime),
		FinishedAt:       schema.Optional(f, "finished_at", decodeTime),
		EnvironmentSetup: schema.Optional(f, "environment_setup", decodeTiming),
		AgentSetup:       schema.Optional(f, "agent_setup", decodeTiming),
		AgentExecution:   schema.Optional(f, "agent_execution", decodeTiming),
		Verifier:         schema.Optional(f, "verifier", decodeTiming),
		StepResults:      schema.OptionalList(f, "step_results", schema.List(schema.Model("StepResult", stepFields))),
	}
}

// decodeTaskID picks the kind of task by the keys that are there; what has
// more of a kind's keys is that kind.
func decodeTaskID(c *schema.Cursor, v value.Value) (TaskID, bool) {
	obj, ok := v.(*value.Object)
	if ok && obj.Has("git_url") && obj.Has("path") {
		return schema.Model("GitTaskId", gitIDFields)(c, v)
	}
	if ok && obj.Has("org") && obj.Has("name") {
		return schema.Model("PackageTaskId", packageIDFields)(c, v)
	}
	same := func(id TaskID) TaskID { return id }
	return schema.Union(
		schema.As("LocalTaskId", schema.Model("LocalTaskId", localIDFields), same),
		schema.As("GitTaskId", schema.Model("GitTaskId", gitIDFields), same),
		schema.As("PackageTaskId", schema.Model("PackageTaskId", packageIDFields), same),
	)(c, v)
}

func localIDFields(f *schema.Fields) TaskID {
	return TaskID{Kind: LocalTask, Path: schema.Required(f, "path", schema.Path)}
}

func gitIDFields(f *schema.Fields) TaskID {
	return TaskID{
		Kind:        GitTask,
		GitURL:      schema.Required(f, "git_url", schema.Str),
		GitCommitID: schema.Optional(f, "git_commit_id", schema.Str),
		Path:        schema.Required(f, "path", schema.Path),
	}
}

func packageIDFields(f *schema.Fields) TaskID {
	return TaskID{
		Kind: PackageTask,
		Org:  schema.Required(f, "org", schema.Str),
		Name: schema.Required(f, "name", schema.Str),
		Ref:  schema.Optional(f, "ref", schema.Str),
	}
}

func agentInfoFields(f *schema.Fields) AgentInfo {
	return AgentInfo{
		Name:      schema.Required(f, "name", schema.Str),
		Version:   schema.Required(f, "version", schema.Str),
		ModelInfo: schema.Optional(f, "model_info", schema.Model("ModelInfo", modelInfoFields)),
	}
}

func modelInfoFields(f *schema.Fields) ModelInfo {
	return ModelInfo{
		Name:     schema.Required(f, "name", schema.Str),
		Provider: schema.Optional(f, "provider", schema.Str),
	}
}

func decodeAgentResult(c *schema.Cursor, v value.Value) (AgentResult, bool) {
	return schema.Model("AgentContext", agentResultFields)(c, v)
}

func agentResultFields(f *schema.Fields) AgentResult {
	a := AgentResult{
		NInputTokens:  schema.Optional(f, "n_input_tokens", schema.Int),
		NCacheTokens:  schema.Optional(f, "n_cache_tokens", schema.Int),
		NOutputTokens: schema.Optional(f, "n_output_tokens", schema.Int),
		CostUSD:       schema.Optional(f, "cost_usd", schema.Float),
	}
	if list := schema.Optional(f, "rollout_details", schema.List(decodeRollout)); list != nil {
		a.RolloutDetails = *list
	}
	if metadata := schema.Optional(f, "metadata", schema.Object); metadata != nil {
		a.Metadata = *metadata
	}
	return a
}

// decodeRollout validates the token record of one conversation; its keys come
// out in the order of the format, only those that are there.
func decodeRollout(c *schema.Cursor, v value.Value) (value.Value, bool) {
	if _, ok := v.(*value.Object); !ok {
		c.Fail("dict_type", "Input should be a valid dictionary", v)
		return nil, false
	}
	return schema.Model("RolloutDetail", func(f *schema.Fields) value.Value {
		out := &value.Object{}
		setGiven(f, out, "prompt_token_ids", listOf(listOf(asValue(schema.Int))))
		setGiven(f, out, "completion_token_ids", listOf(listOf(asValue(schema.Int))))
		setGiven(f, out, "logprobs", listOf(listOf(floatValue)))
		setGiven(f, out, "extra", dictOf(listOf(schema.Any)))
		return out
	})(c, v)
}

func asValue[T value.Value](d schema.Decoder[T]) schema.Decoder[value.Value] {
	return schema.Convert(d, func(v T) value.Value { return v })
}

func floatValue(c *schema.Cursor, v value.Value) (value.Value, bool) {
	x, ok := schema.Float(c, v)
	return value.Float(x), ok
}

func listOf(d schema.Decoder[value.Value]) schema.Decoder[value.Value] {
	return schema.Convert(schema.List(d), func(items []value.Value) value.Value { return value.List(items) })
}

func dictOf(d schema.Decoder[value.Value]) schema.Decoder[value.Value] {
	return schema.Convert(schema.Dict(d), func(m schema.Map[value.Value]) value.Value {
		out := value.NewObject(m.Len())
		for key, item := range m.All() {
			out.Set(key, item)
		}
		return out
	})
}

func decodeException(c *schema.Cursor, v value.Value) (ExceptionInfo, bool) {
	return schema.Model("ExceptionInfo", func(f *schema.Fields) ExceptionInfo {
		return ExceptionInfo{
			Type:       schema.Required(f, "exception_type", schema.Str),
			Message:    schema.Required(f, "exception_message", schema.Str),
			Traceback:  schema.Required(f, "exception_traceback", schema.Str),
			OccurredAt: schema.Required(f, "occurred_at", decodeTime),
		}
	})(c, v)
}

func decodeTiming(c *schema.Cursor, v value.Value) (Timing, bool) {
	return schema.Model("TimingInfo", func(f *schema.Fields) Timing {
		return Timing{
			StartedAt:  schema.Optional(f, "started_at", decodeTime),
			FinishedAt: schema.Optional(f, "finished_at", decodeTime),
		}
	})(c, v)
}

func stepFields(f *schema.Fields) StepResult {
	return StepResult{
		StepName:       schema.Required(f, "step_name", schema.Str),
		AgentResult:    schema.Optional(f, "agent_result", decodeAgentResult),
		VerifierResult: schema.Optional(f, "verifier_result", decodeVerifierResult),
		ExceptionInfo:  schema.Optional(f, "exception_info", decodeException),
		AgentExecution: schema.Optional(f, "agent_execution", decodeTiming),
		Verifier:       schema.Optional(f, "verifier", decodeTiming),
	}
}

func decodeVerifierResult(c *schema.Cursor, v value.Value) (VerifierResult, bool) {
	return schema.Model("VerifierResult", func(f *schema.Fields) VerifierResult {
		return VerifierResult{Rewards: schema.Optional(f, "rewards", decodeRewards)}
	})(c, v)
}

// decodeRewards validates a table of numbers. Unlike a verifier's own file, a
// stored one may hold null, which stands for a number that is not finite.
func decodeRewards(c *schema.Cursor, v value.Value) (reward.Rewards, bool) {
	numbers, ok := schema.Dict(decodeReward)(c, v)
	var out reward.Rewards
	for name, x := range numbers.All() {
		out.Set(name, x)
	}
	return out, ok
}

func decodeReward(c *schema.Cursor, v value.Value) (value.Number, bool) {
	switch v := v.(type) {
	case value.Int:
		return v, true
	case value.Float:
		return v, true
	case value.Null, nil:
		return value.Float(math.NaN()), true
	default:
		return decodeNumber(c, v)
	}
}

// decodeNumber is the lax union of float and int.
func decodeNumber(c *schema.Cursor, v value.Value) (value.Number, bool) {
	return schema.Union(
		schema.As("float", schema.Float, func(x float64) value.Number { return value.Float(x) }),
		schema.As("int", schema.Int, func(n value.Int) value.Number { return n }),
	)(c, v)
}
