package jobcli

import (
	"encoding/json"
	"io"
	"time"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/report"
	"github.com/proctor-run/proctor/score"
)

// jsonView writes one JSON object per event. docs/json-events.md is its
// promise: fields may be added, none changes its meaning.
type jsonView struct {
	enc    *json.Encoder
	policy *score.Policy // nil for none
}

func newJSONView(w io.Writer, policy *score.Policy) *jsonView {
	return &jsonView{enc: json.NewEncoder(w), policy: policy}
}

type jsonEvent struct {
	Type     string         `json:"type"`
	Time     time.Time      `json:"time"`
	Job      string         `json:"job"`
	Trial    string         `json:"trial,omitempty"`
	Task     string         `json:"task,omitempty"`
	Attempt  int            `json:"attempt,omitempty"`
	Message  string         `json:"message,omitempty"`
	Result   *report.Result `json:"result,omitempty"`
	Progress *jsonProgress  `json:"progress,omitempty"`
	// Statistics come with job_end.
	Statistics *report.Statistics `json:"statistics,omitempty"`
	// Models come with job_end of a job whose agents used any.
	Models *report.Models `json:"models,omitempty"`
	// PolicyScore comes with job_end of a job that is scored under a policy.
	PolicyScore *report.PolicyScore `json:"policy_score,omitempty"`
}

type jsonProgress struct {
	Total   int `json:"total"`
	Done    int `json:"done"`
	Running int `json:"running"`
	Pending int `json:"pending"`
	// The classes of those done; they add up.
	Scored               int          `json:"scored"`
	ErroredWithReward    int          `json:"errored_with_reward"`
	ErroredWithoutReward int          `json:"errored_without_reward"`
	Unscored             int          `json:"unscored"`
	Cancelled            int          `json:"cancelled"`
	Metrics              []jsonMetric `json:"metrics"`
}

type jsonMetric struct {
	Group   string          `json:"group"`
	Name    string          `json:"name"`
	Value   json.RawMessage `json:"value"`
	N       int             `json:"n"`
	NScored int             `json:"n_scored"`
}

func (v *jsonView) event(e job.Event) {
	out := jsonEvent{Type: string(e.Kind), Time: e.Time.UTC(), Job: e.JobName, Message: e.Message, Progress: newJSONProgress(e.Progress)}
	if e.Statistics != nil {
		out.Statistics = report.NewStatistics(e.Statistics)
	}
	out.Models = report.NewModels(e.Models)
	if e.Records != nil {
		// What is wrong is an error after the job.
		if s, err := ScoreUnder(v.policy, e.Records); err == nil && s != nil {
			out.PolicyScore = report.NewPolicyScore(s)
		}
	}
	if t := e.Trial; t != nil {
		out.Type = "trial_" + string(t.Kind)
		out.Trial, out.Task, out.Attempt = t.TrialName, t.TaskName, t.Attempt
		if out.Message == "" {
			out.Message = t.Message
		}
		if t.Result != nil {
			out.Result = report.NewResult(t.Result)
		}
	}
	if r := e.Retry; r != nil {
		out.Trial, out.Task, out.Attempt = r.TrialName, r.TaskName, r.Attempt
	}
	if w := e.Waiting; w != nil {
		out.Trial, out.Task, out.Attempt = w.TrialName, w.TaskName, w.Attempt
	}
	// A reader that went away ends the run by its own signal, if at all.
	_ = v.enc.Encode(out)
}

func (*jsonView) close() {}

func newJSONProgress(p job.Progress) *jsonProgress {
	class := p.Ended.Outcomes
	out := &jsonProgress{
		Total: p.Total, Done: p.Ended.Trials, Running: p.Running, Pending: p.Pending, Scored: class[jobdir.ClassScored],
		ErroredWithReward: class[jobdir.ClassErroredWithReward], ErroredWithoutReward: class[jobdir.ClassErroredWithoutReward],
		Unscored: class[jobdir.ClassUnscored], Cancelled: class[jobdir.ClassCancelled], Metrics: []jsonMetric{},
	}
	for _, m := range p.Metrics {
		value := json.RawMessage(m.Value)
		if !json.Valid(value) { // nan and the infinities have no JSON
			value = json.RawMessage("null")
		}
		out.Metrics = append(out.Metrics, jsonMetric{Group: m.Group, Name: m.Name, Value: value, N: m.N, NScored: m.NScored})
	}
	return out
}
