package jobdir

import (
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/dump"
	"github.com/proctor-run/proctor/value"
)

// AppendJSON appends the text of a trial's result.json.
func (r *TrialResult) AppendJSON(dst []byte, lookup harbor.Lookup) []byte {
	return value.AppendPydantic(dst, Encoder{Lookup: lookup}.Result(r), Indent)
}

// Result dumps a trial result.
func (e Encoder) Result(r *TrialResult) *value.Object {
	o := e.object()
	o.Str("id", r.ID.String())
	o.Str("task_name", r.TaskName)
	o.Str("trial_name", r.TrialName)
	o.Str("trial_uri", r.TrialURI)
	o.Set("task_id", e.taskID(r.TaskID))
	o.OptStr("source", r.Source)
	o.Str("task_checksum", r.TaskChecksum)
	o.Set("config", e.Config(r.Config))
	o.Set("agent_info", e.agentInfo(r.AgentInfo))
	e.agentResult(o, r.AgentResult)
	e.verifierResult(o, r.VerifierResult)
	e.exception(o, r.ExceptionInfo)
	setTime(o, "started_at", r.StartedAt)
	setTime(o, "finished_at", r.FinishedAt)
	e.timing(o, "environment_setup", r.EnvironmentSetup)
	e.timing(o, "agent_setup", r.AgentSetup)
	e.timing(o, "agent_execution", r.AgentExecution)
	e.timing(o, "verifier", r.Verifier)
	if r.StepResults == nil {
		o.Set("step_results", nil)
	} else {
		o.Set("step_results", dump.List(r.StepResults, e.step))
	}
	return o.Value()
}

func (e Encoder) taskID(id TaskID) *value.Object {
	o := e.object()
	switch id.Kind {
	case PackageTask:
		o.Str("org", id.Org)
		o.Str("name", id.Name)
		o.OptStr("ref", id.Ref)
	case GitTask:
		o.Str("git_url", id.GitURL)
		o.OptStr("git_commit_id", id.GitCommitID)
		o.Str("path", id.Path)
	default:
		o.Str("path", id.Path)
	}
	return o.Value()
}

func (e Encoder) agentInfo(a AgentInfo) *value.Object {
	o := e.object()
	o.Str("name", a.Name)
	o.Str("version", a.Version)
	if a.ModelInfo == nil {
		o.Set("model_info", nil)
		return o.Value()
	}
	m := e.object()
	m.Str("name", a.ModelInfo.Name)
	m.OptStr("provider", a.ModelInfo.Provider)
	o.Set("model_info", m.Value())
	return o.Value()
}

func (e Encoder) agentResult(parent *dump.Object, a *AgentResult) {
	const key = "agent_result"
	if a == nil {
		parent.Set(key, nil)
		return
	}
	o := e.object()
	setInt(o, "n_input_tokens", a.NInputTokens)
	setInt(o, "n_cache_tokens", a.NCacheTokens)
	setInt(o, "n_output_tokens", a.NOutputTokens)
	o.OptFloat("cost_usd", a.CostUSD)
	if a.RolloutDetails == nil {
		o.Set("rollout_details", nil)
	} else {
		o.Set("rollout_details", a.RolloutDetails)
	}
	if a.Metadata == nil {
		o.Set("metadata", nil)
	} else {
		o.Set("metadata", a.Metadata)
	}
	parent.Set(key, o.Value())
}

func (e Encoder) verifierResult(parent *dump.Object, v *VerifierResult) {
	const key = "verifier_result"
	if v == nil {
		parent.Set(key, nil)
		return
	}
	o := e.object()
	if v.Rewards == nil {
		o.Set("rewards", nil)
	} else {
		o.Set("rewards", v.Rewards.Object())
	}
	parent.Set(key, o.Value())
}

func (e Encoder) exception(parent *dump.Object, x *ExceptionInfo) {
	const key = "exception_info"
	if x == nil {
		parent.Set(key, nil)
		return
	}
	o := e.object()
	o.Str("exception_type", x.Type)
	o.Str("exception_message", x.Message)
	o.Str("exception_traceback", x.Traceback)
	o.Str("occurred_at", x.OccurredAt.String())
	parent.Set(key, o.Value())
}

func (e Encoder) timing(parent *dump.Object, key string, t *Timing) {
	if t == nil {
		parent.Set(key, nil)
		return
	}
	o := e.object()
	setTime(o, "started_at", t.StartedAt)
	setTime(o, "finished_at", t.FinishedAt)
	parent.Set(key, o.Value())
}

func (e Encoder) step(s StepResult) value.Value {
	o := e.object()
	o.Str("step_name", s.StepName)
	e.agentResult(o, s.AgentResult)
	e.verifierResult(o, s.VerifierResult)
	e.exception(o, s.ExceptionInfo)
	e.timing(o, "agent_execution", s.AgentExecution)
	e.timing(o, "verifier", s.Verifier)
	return o.Value()
}
