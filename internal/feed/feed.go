// Package feed tells others how a job goes while it runs: a progress event for each phase
// of a trial, and a stream of what its agent, its harness and its tests logged.
//
// Events go to standard output, a JSON object per line, or to a receiver by HTTP. They are
// best effort: whatever a receiver does, no trial waits for it or fails because of it.
//
// The rules are those of the outcome mapping, sections 15.1 to 15.3.
package feed

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/proctor-run/proctor/value"
)

// Phase is how far a trial has come. (Outcome mapping, section 15.1.)
type Phase string

// The phases that receivers know. A trial is Assigned before it has a slot and Starting
// when it has one; Completed and Failed are its end.
const (
	Assigned  Phase = "assigned"
	Starting  Phase = "starting"
	Waiting   Phase = "waiting"
	Running   Phase = "running"
	Completed Phase = "completed"
	Failed    Phase = "failed"
)

var phases = [...]Phase{Assigned, Starting, Waiting, Running, Completed, Failed}

// Progress is one progress event of a trial.
type Progress struct {
	Task  string
	Trial string
	Phase Phase
	// Message is for people. Where it is blank the trial's name stands there, which
	// nothing else in the event tells.
	Message string
}

// Trial is what a finished trial logged. Each channel that is not blank becomes an event.
type Trial struct {
	Task, Trial, Status string
	// Agent, Harness and TestStdout are the channels agent, harness and test_stdout. Of
	// each the last 64 KiB are sent.
	Agent, Harness, TestStdout string
}

// DefaultTimeout is how long a receiver has for its answer. (Outcome mapping, section
// 15.2.)
const DefaultTimeout = 5 * time.Second

// Options say where events go. The zero value sends none.
type Options struct {
	// Progress and Logs are targets of [ProgressTarget] and [LogTarget]; nil is none.
	Progress, Logs *Target
	// Out is what targets of standard output write to, a whole line or several at a
	// time. Until Close has returned nobody else may write to it.
	Out io.Writer
	// Redact takes secrets out of a text. It is called for all that leaves, by several
	// goroutines; nil takes nothing. Live output is handed to it in whole lines, a part
	// at a time: a secret of several lines is found there only if it finds each line.
	Redact func(string) string
	// Timeout replaces DefaultTimeout when it is positive.
	Timeout time.Duration
	// Warn is called at the first failure of a target, and at Close where events of it
	// were lost. Its calls come one after the other, from a goroutine of the feed.
	Warn func(string)
}

// Feed sends events. Its methods may be called by several goroutines, and never wait for
// a receiver. Close ends it.
type Feed struct {
	progress, logs *sink // nil where nothing is sent; the same for standard output
	progressTo     *Target
	logsTo         *Target
	redact         func(string) string
	notices        *notices

	closing sync.Once
	whole   bool // what Close says

	mu       sync.Mutex // held until an event is in the queue, so that they lie there in order
	sequence int64
}

// New starts a feed.
func New(o Options) *Feed {
	f := &Feed{progressTo: o.Progress, logsTo: o.Logs, redact: o.redaction(), notices: newNotices(o.Warn)}
	timeout := o.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	var out *sink
	open := func(t *Target, what string) *sink {
		switch {
		case t == nil:
			return nil
		case t.receiver != nil:
			return newSink(what+" to "+t.receiver.host, newPoster(t.receiver, timeout), f)
		case out == nil:
			out = newSink("events to standard output", &lineWriter{w: o.Out}, f)
		}
		return out
	}
	f.progress = open(o.Progress, "progress events")
	f.logs = open(o.Logs, "log events")
	return f
}

// tokenMark takes the place of a receiver's token. (Outcome mapping, section 13.4.)
const tokenMark = "[REDACTED_GATEWAY_TOKEN]"

// redaction takes out the tokens of the receivers, too, whatever Redact knows of.
func (o Options) redaction() func(string) string {
	return func(text string) string {
		for _, t := range []*Target{o.Progress, o.Logs} {
			if t != nil && t.receiver != nil {
				text = strings.ReplaceAll(text, t.receiver.token(), tokenMark)
			}
		}
		if o.Redact != nil {
			text = o.Redact(text)
		}
		return text
	}
}

// Progress sends a progress event. The only error is that of an unknown phase.
func (f *Feed) Progress(p Progress) error {
	if !slices.Contains(phases[:], p.Phase) {
		return fmt.Errorf("unknown phase %.40q of a trial: expected one of %s", p.Phase, phaseList())
	}
	if f.progress == nil {
		return nil
	}
	task, message := f.name(p.Task), f.message(p.Message)
	if message == "" {
		message = f.name(p.Trial)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sequence++
	f.progress.push(classProgress, progressEvent(f.progressTo, task, f.sequence, p.Phase, message))
	return nil
}

func phaseList() string {
	var names []string
	for _, p := range phases {
		names = append(names, string(p))
	}
	return strings.Join(names, ", ")
}

// Finished sends what a finished trial logged.
func (f *Feed) Finished(t Trial) {
	if f.logs == nil {
		return
	}
	task, trial, status := f.name(t.Task), f.name(t.Trial), f.name(t.Status)
	var lines [][]byte
	for _, channel := range []struct{ stream, text string }{
		{streamAgent, t.Agent}, {"harness", t.Harness}, {"test_stdout", t.TestStdout},
	} {
		if text := f.message(channel.text); text != "" {
			lines = append(lines, logEvent(trial, task, value.Str(status), channel.stream, text))
		}
	}
	if len(lines) > 0 {
		f.logs.push(classLog, lines...)
	}
}

// Delta sends what an agent has printed since the last call: whole lines, or a secret that
// stands in two parts is not found.
func (f *Feed) Delta(task, trial, text string) {
	if f.logs == nil || text == "" {
		return
	}
	f.logs.push(classDelta, logEvent(f.name(trial), f.name(task), nil, streamAgent, clip(f.redact(text), maxMessage)))
}

// name is a short text as it may leave.
func (f *Feed) name(text string) string { return clip(f.redact(text), maxName) }

// message is a long text as it may leave, "" for a blank one. Secrets are taken out of the
// whole before its end is cut off, or the cut could leave a part of one.
func (f *Feed) message(text string) string {
	if value.Strip(text) == "" {
		return ""
	}
	return clip(f.redact(text), maxMessage)
}

// Close sends what still waits, until ctx ends; the rest is given up then. Events of later
// calls are lost.
//
// whole is false where Out may have got a part of a line: it failed within one, or is
// within one still. Whoever writes there next begins with a line end. Later calls return
// the same.
func (f *Feed) Close(ctx context.Context) (whole bool) {
	f.closing.Do(func() {
		for s := range f.sinks() {
			s.close()
		}
		f.whole = true
		for s := range f.sinks() {
			f.whole = s.wait(ctx) && f.whole
		}
		f.notices.close(ctx)
	})
	return f.whole
}

// sinks yields each sink once.
func (f *Feed) sinks() iter.Seq[*sink] {
	return func(yield func(*sink) bool) {
		if f.progress != nil && !yield(f.progress) {
			return
		}
		if f.logs != nil && f.logs != f.progress {
			yield(f.logs)
		}
	}
}
