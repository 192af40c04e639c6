package outcome

import "github.com/proctor-run/proctor/value"

// Status says how a job ended. It counts errored trials only, never the score.
type Status string

// The statuses of a job. TimedOut is only ever given by a consumer, see
// [Run.Normalize].
const (
	Completed Status = "completed"
	Failed    Status = "failed"
	TimedOut  Status = "timed_out"
)

// Outcome is a job's end, classified (outcome mapping, section 2.1).
type Outcome struct {
	Status   Status
	Score    float64   // flat mean over all metric values; never nan or infinite
	Resolved value.Int // score times total, rounded half to even
	Total    value.Int // trials
	Reason   Code      // "" is null
}

// failed is what stands for a result of which nothing could be used.
func failed(reason Code) Outcome { return Outcome{Status: Failed, Reason: reason} }

// Missing is the outcome of a job without a result file. A dangling link is no
// file either.
func Missing() Outcome { return failed(ResultMissing) }

// Malformed is the outcome of a job whose result file cannot be read or used.
func Malformed() Outcome { return failed(ResultMalformed) }

// Of is the outcome of a job, given the content of its result.json. Whatever
// is wrong with it gives [Malformed], as a whole.
func Of(resultJSON []byte) Outcome { return Explain(resultJSON).Outcome }

// Object returns the outcome's five fields, in the order of the schema.
func (o Outcome) Object() *value.Object {
	obj := value.NewObject(5)
	obj.Append("status", value.Str(o.Status))
	obj.Append("score", value.Float(o.Score))
	obj.Append("resolved", o.Resolved)
	obj.Append("total", o.Total)
	obj.Append("reason_code", o.Reason.value())
	return obj
}
