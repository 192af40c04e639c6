package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/value"
)

// maxExplained is up to how many trials are named for a field.
const maxExplained = 10

// explainOutcome says, field by field, how an outcome came about. The trials are
// those that the result file itself lists.
func explainOutcome(w io.Writer, x outcome.Explanation, line, path string) {
	e := explainer{w: w, x: x, result: parsedResult(path)}
	_, _ = fmt.Fprintln(w)
	e.status()
	e.score()
	e.resolved()
	e.total()
	e.reason()
	e.consumer(line)
}

// parsedResult reads what the file says about trials; nil if it cannot be read
// as a whole, which an outcome does not need.
func parsedResult(path string) *jobdir.Result {
	if !isFile(path) {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	r, err := jobdir.ParseResult(data)
	if err != nil {
		return nil
	}
	return &r
}

type explainer struct {
	w      io.Writer
	x      outcome.Explanation
	result *jobdir.Result
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
	if e.result == nil {
		return
	}
	left := maxExplained
	for _, group := range e.result.Stats.Evals.All() {
		for typ, names := range group.ExceptionStats.All() {
			for _, name := range names {
				if left--; left < 0 {
					e.detail("…")
					return
				}
				e.detail("trial %s: %s (%s)", name, typ, outcome.ReasonOfException(typ))
			}
		}
	}
}

// unwritable names the trials whose rewards JSON cannot say: these are why a
// metric is null.
func (e *explainer) unwritable() {
	if e.result == nil {
		return
	}
	for _, group := range e.result.Stats.Evals.All() {
		for _, name := range group.RewardStats.Names() {
			for _, entry := range group.RewardStats.Entries(name) {
				if text := value.Repr(entry.Value); text == "nan" || text == "inf" || text == "-inf" {
					e.detail("reward %s is %s in %s", name, text, someOf(entry.Trials))
				}
			}
		}
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
		e.sample(s)
	}
}

func (e *explainer) sample(s outcome.Sample) {
	text := fmt.Sprintf("%s: metrics[%d].%s is %s", s.Group, s.Metric, s.Key, value.FloatRepr(s.Value))
	if len(s.Hidden) > 0 {
		text += fmt.Sprintf("; it hides %s", strings.Join(s.Hidden, ", "))
	}
	e.detail("%s%s", text, e.behind(s))
}

// behind says which trials a metric value comes from: for the highest and the
// lowest the first that has it, else how many count.
func (e *explainer) behind(s outcome.Sample) string {
	if e.result == nil {
		return ""
	}
	group, ok := e.result.Stats.Evals.Get(s.Group)
	if !ok {
		return ""
	}
	if name := firstWith(group, s); name != "" {
		return ", from trial " + name
	}
	text := fmt.Sprintf(", from %s with rewards", count(group.NTrials, "trial"))
	if unscored := unscoredTrials(group); len(unscored) > 0 {
		text += ", and as 0 " + someOf(unscored)
	}
	return text
}

// unscoredTrials are the trials that errored and have no rewards.
func unscoredTrials(group *jobdir.Eval) []string {
	scored := map[string]bool{}
	for _, name := range group.RewardStats.Names() {
		for _, entry := range group.RewardStats.Entries(name) {
			for _, trial := range entry.Trials {
				scored[trial] = true
			}
		}
	}
	var unscored []string
	for _, names := range group.ExceptionStats.All() {
		for _, name := range names {
			if !scored[name] {
				unscored = append(unscored, name)
			}
		}
	}
	return unscored
}

// firstWith finds the trial whose reward a metric of type max or min chose.
func firstWith(group *jobdir.Eval, s outcome.Sample) string {
	names := group.RewardStats.Names()
	if s.Key != string(jobdir.MetricMax) && s.Key != string(jobdir.MetricMin) || len(names) != 1 {
		return ""
	}
	for _, entry := range group.RewardStats.Entries(names[0]) {
		c, ordered := value.Compare(entry.Value, value.Float(s.Value))
		if ordered && c == 0 && len(entry.Trials) > 0 {
			return entry.Trials[0]
		}
	}
	return ""
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

func (e *explainer) reason() {
	if r := e.x.Outcome.Reason; r != "" {
		e.field("reason_code", string(r), "the result file is missing or malformed")
		return
	}
	e.field("reason_code", "null", "a result that can be read has none; reasons stay with the trials")
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
	if n.Reason == outcome.ResultInvalid && e.x.Outcome.Status == outcome.Failed && e.x.Outcome.Score > 0 {
		_, _ = fmt.Fprintln(e.w, "because a failed status with a score above 0 is out of contract.")
	}
}
