package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/report"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

// maxExplained is up to how many trials are named for a field.
const maxExplained = 10

// explainOutcome says, field by field, how an outcome came about, and the score of a
// policy, if there is one. shown is what the line has, which may have that score.
func explainOutcome(w io.Writer, x *report.Outcome, s *score.PolicyScore, shown outcome.Explanation, line string) {
	e := explainer{w, x, shown}
	_, _ = fmt.Fprintln(w)
	e.status()
	e.score()
	e.resolved()
	e.total()
	e.finished()
	e.reason()
	if s != nil {
		e.policy(s)
	}
	e.consumer(line)
}

type explainer struct {
	w     io.Writer
	x     *report.Outcome
	shown outcome.Explanation
}

// field writes a field, its value and a reason.
func (e *explainer) field(name, value, format string, args ...any) {
	_, _ = fmt.Fprintf(e.w, "%-12s %s: %s\n", name, value, clean(fmt.Sprintf(format, args...)))
}

// detail writes a line that belongs to the field above.
func (e *explainer) detail(format string, args ...any) {
	_, _ = fmt.Fprintf(e.w, "%-12s   %s\n", "", clean(fmt.Sprintf(format, args...)))
}

func (e *explainer) status() {
	o := e.x.Outcome
	switch {
	case o.Reason == outcome.ResultMissing:
		e.field("status", string(o.Status), "there is no result file")
		return
	case e.x.Err != nil:
		e.field("status", string(o.Status), "the result file cannot be used: %v", e.x.Err)
		e.unwritable()
		return
	case o.Status == outcome.Completed:
		e.field("status", string(o.Status), "stats.n_errored_trials is 0; the score has no say")
		return
	}
	e.field("status", string(o.Status), "stats.n_errored_trials is %s", e.x.Errored)
	e.erroredTrials()
}

// erroredTrials names the trials whose exceptions made the job a failure, with
// the reason codes that belong to these.
func (e *explainer) erroredTrials() {
	for i, t := range e.x.ErroredTrials {
		if i == maxExplained {
			e.detail("…")
			return
		}
		e.detail("trial %s: %s (%s)", t.Trial, t.Exception, t.Reason)
	}
}

// unwritable names the trials whose rewards JSON cannot say.
func (e *explainer) unwritable() {
	for _, r := range e.x.Unwritable {
		e.detail("reward %s is %s in %s", r.Reward, r.Value, someOf(r.Trials))
	}
}

// someOf names some trials.
func someOf(trials []string) string {
	text := strings.Join(trials[:min(len(trials), maxExplained)], ", ")
	if len(trials) > maxExplained {
		text += ", …"
	}
	if len(trials) == 1 {
		return "trial " + text
	}
	return "trials " + text
}

func (e *explainer) score() {
	score := value.FloatRepr(e.x.Outcome.Score)
	n := len(e.x.Samples)
	switch {
	case e.x.Err != nil:
		e.field("score", score, "nothing of the result counts")
		return
	case n == 0:
		e.field("score", score, "there is no metric")
		return
	case n == 1:
		e.field("score", score, "the only metric value")
	default:
		e.field("score", score, "mean of %d metric values, as they come", n)
	}
	for i, s := range e.x.Samples {
		if i == maxExplained {
			e.detail("…")
			return
		}
		text := fmt.Sprintf("%s: metrics[%d].%s is %s", s.Group, s.Metric, s.Key, value.FloatRepr(s.Value))
		if len(s.Hidden) > 0 {
			text += fmt.Sprintf("; it hides %s", strings.Join(s.Hidden, ", "))
		}
		e.detail("%s%s", text, behind(e.x.Sources[i]))
	}
}

// behind says which trials a metric value comes from: for the highest and the
// lowest the first that has it, else how many count.
func behind(s report.SampleSource) string {
	switch {
	case !s.Known:
		return ""
	case s.Trial != "":
		return ", from trial " + s.Trial
	}
	text := fmt.Sprintf(", from %s with rewards", count(s.Rewarded, "trial"))
	if len(s.Unscored) > 0 {
		text += ", and as 0 " + someOf(s.Unscored)
	}
	return text
}

func (e *explainer) resolved() {
	o := e.x.Outcome
	if e.x.Err != nil {
		e.field("resolved", o.Resolved.String(), "nothing of the result counts")
		return
	}
	e.field("resolved", o.Resolved.String(), "score × n_total_trials = %s × %s = %s, rounded half to even",
		value.FloatRepr(o.Score), e.x.Counted, value.FloatRepr(e.x.Product))
}

func (e *explainer) total() {
	o := e.x.Outcome
	switch {
	case e.x.Err != nil:
		e.field("total", o.Total.String(), "nothing of the result counts")
	case e.x.Fallback:
		e.field("total", o.Total.String(), "n_total_trials is 0 or not there: n_completed_trials + n_errored_trials = %s + %s", e.x.Completed, e.x.Errored)
	default:
		e.field("total", o.Total.String(), "n_total_trials")
	}
}

// finished says whether the job is finished, which no field of the line does.
func (e *explainer) finished() {
	r := e.x.Result
	switch {
	case r == nil:
		return
	case r.FinishedAt == nil:
		e.field("finished_at", "null", "the job is not finished; n_pending_trials is %d, n_running_trials %d", r.Stats.NPendingTrials, r.Stats.NRunningTrials)
	default:
		e.field("finished_at", r.FinishedAt.String(), "n_pending_trials is %d, n_running_trials %d", r.Stats.NPendingTrials, r.Stats.NRunningTrials)
	}
	for _, why := range e.x.Unfinished {
		e.detail("%s", why)
	}
}

func (e *explainer) reason() {
	switch r := e.shown.Outcome.Reason; {
	case r == outcome.ResultPartial:
		e.field("reason_code", string(r), "%s trials have finished, and another number was expected: the line is that of a failed job, without a score", e.x.Finished())
		return
	case r != "":
		e.field("reason_code", string(r), "the result file is missing or malformed")
		return
	}
	e.field("reason_code", "null", "a result that can be read has none; reasons stay with the trials")
}

// policy says how the score under a policy came about, task by task.
func (e *explainer) policy(s *score.PolicyScore) {
	policy, result := jobcli.PolicyTexts(s)
	e.field("policy_score", value.FloatRepr(s.Score), "%s: %s", policy, result)
	for i, t := range s.Tasks {
		if i == maxExplained {
			e.detail("…")
			break
		}
		does := "does not count"
		if _, kept := slices.BinarySearch(s.KeptAt, i); kept {
			does = "counts"
		}
		e.detail("task %s: %s, %s", t.Task, value.FloatRepr(t.Score), does)
	}
	if e.shown.Outcome.Score != e.x.Outcome.Score || e.shown.Outcome.Resolved.String() != e.x.Outcome.Resolved.String() {
		e.detail("the line has it in the place of Harbor's score; resolved is score × n_total_trials = %s × %s = %s, rounded half to even",
			value.FloatRepr(e.shown.Outcome.Score), e.shown.Counted, value.FloatRepr(e.shown.Product))
	}
}

// consumer says what comes of the line on the other side.
func (e *explainer) consumer(line string) {
	n, err := outcome.Run{Stdout: line}.Normalize()
	text := fmt.Sprintf("%s, score %s", n.Status, value.FloatRepr(n.Score))
	if n.Reason != "" {
		text += ", reason " + string(n.Reason)
	}
	if err != nil {
		text += fmt.Sprintf(" (%v)", err)
	}
	_, _ = fmt.Fprintf(e.w, "\nA consumer that finds the line, after exit status 0, makes of it: %s\n", clean(text))
	if n.Reason == outcome.ResultInvalid && e.shown.Outcome.Status == outcome.Failed && e.shown.Outcome.Score > 0 {
		_, _ = fmt.Fprintln(e.w, "because a failed status with a score above 0 is out of contract.")
	}
}
