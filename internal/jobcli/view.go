package jobcli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/trial"
)

// The rules of what is shown while a job runs:
//
//   - stdout is the result, stderr is the conversation. With --json, stdout is
//     the event stream and nothing else.
//   - On a terminal, stderr shows a live view that is redrawn in place. On
//     anything else it gets a line for each trial that ended, and one for
//     whatever else needs one, never a control character; --verbose adds the
//     phases of trials.
//   - --quiet leaves out both; warnings and errors are still shown.
//   - Who reads may have gone: a write that fails ends what is shown, not the job.
//   - Nothing that a task or an agent chose is printed without cleaning.

// view shows a running job. Events come one at a time.
type view interface {
	event(job.Event)
	close()
}

// noView shows warnings alone.
type noView struct {
	w    io.Writer
	name string // of the program
}

func (v noView) event(e job.Event) {
	if e.Kind == job.EventWarning {
		_, _ = fmt.Fprintf(v.w, "%s: warning: %s\n", v.name, console.Clean(e.Message))
	}
}

func (noView) close() {}

// lineView writes one line per event; those of trials that go on only if it is verbose.
type lineView struct {
	w       io.Writer
	verbose bool
	started time.Time
}

func (v *lineView) event(e job.Event) {
	if e.Kind == job.EventJobStart || v.started.IsZero() { // installations come before the start
		v.started = e.Time
	}
	if e.Kind == job.EventTrial && e.Trial.Kind != trial.EventEnd && !v.verbose {
		return
	}
	if e.Kind == job.EventWait && !v.verbose {
		return
	}
	text := eventText(e)
	if text == "" {
		return
	}
	_, _ = fmt.Fprintf(v.w, "%s %s\n", console.ClockTime(e.Time.Sub(v.started)), text)
}

func (*lineView) close() {}

// eventText says in one line what an event tells; empty for what needs no
// line.
func eventText(e job.Event) string {
	switch e.Kind {
	case job.EventJobStart:
		return fmt.Sprintf("job %s: %s to run", console.Clean(e.JobName), console.Count(e.Progress.Pending, "trial"))
	case job.EventJobEnd:
		return fmt.Sprintf("job %s: %s", console.Clean(e.JobName), progressText(e.Progress))
	case job.EventWarning:
		return "warning: " + console.Clean(e.Message)
	case job.EventInstall:
		return console.Clean(e.Message)
	case job.EventRetry:
		return fmt.Sprintf("%s: %s", console.Clean(e.Retry.TrialName), console.Clean(e.Message))
	case job.EventWait:
		return fmt.Sprintf("%s: %s", console.Clean(e.Waiting.TrialName), console.Clean(e.Message))
	case job.EventTrial:
		return trialText(e)
	}
	return ""
}

func trialText(e job.Event) string {
	t := e.Trial
	name := console.Clean(t.TrialName)
	switch t.Kind {
	case trial.EventEnd:
		return fmt.Sprintf("%s: %s  [%d/%d]", name, ResultText(t.Result), e.Progress.Ended.Trials, e.Progress.Total)
	case trial.EventProgress:
		return fmt.Sprintf("%s: %s", name, console.Clean(t.Message))
	case trial.EventCancel:
		return ""
	}
	return fmt.Sprintf("%s: %s", name, phaseText(t.Kind))
}

// phaseText names what a trial does after an event.
func phaseText(k trial.EventKind) string {
	switch k {
	case trial.EventStart:
		return "starting"
	case trial.EventEnvironmentStart:
		return "environment"
	case trial.EventAgentSetupStart:
		return "agent setup"
	case trial.EventAgentStart:
		return "agent"
	case trial.EventVerificationStart:
		return "verifier"
	case trial.EventCancel:
		return "cancelling"
	}
	return string(k)
}

// ResultText is the outcome of a trial in a few words, the cause first.
func ResultText(r *jobdir.TrialResult) string {
	took := ""
	if r.StartedAt != nil && r.FinishedAt != nil {
		took = fmt.Sprintf(" (%s)", console.Duration(r.FinishedAt.In(time.UTC).Sub(r.StartedAt.In(time.UTC))))
	}
	rewards := rewardsText(r)
	x, step := r.Failure()
	if x == nil {
		return rewards + took
	}
	text := x.Type
	if m, _, _ := strings.Cut(x.Message, "\n"); m != "" {
		text += ": " + console.Clean(m)
	}
	if step != "" {
		text = fmt.Sprintf("step %s: %s", console.Clean(step), text)
	}
	if r.VerifierResult != nil {
		text = rewards + ", " + text
	}
	return text + took
}

// progressText counts what is done, by outcome.
func progressText(p job.Progress) string {
	class := p.Ended.Outcomes
	withReward, without := class[jobdir.ClassErroredWithReward], class[jobdir.ClassErroredWithoutReward]
	parts := []string{fmt.Sprintf("%d of %d done", p.Ended.Trials, p.Total)}
	if n := class[jobdir.ClassScored] + withReward; n > 0 {
		parts = append(parts, fmt.Sprintf("%d scored", n))
	}
	if n := withReward + without; n > 0 {
		parts = append(parts, fmt.Sprintf("%d errored (%d of them without a reward)", n, without))
	}
	if n := class[jobdir.ClassCancelled]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d cancelled", n))
	}
	if p.Pending > 0 {
		parts = append(parts, fmt.Sprintf("%d not run", p.Pending))
	}
	return strings.Join(parts, ", ")
}
