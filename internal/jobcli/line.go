package jobcli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/proctor-run/proctor/internal/evaluation"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/report"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

// resultLine is the result line of a run, which is printed once.
type resultLine struct {
	mu      sync.Mutex // guards what follows; held while the line is printed
	tasks   int        // of the plan; 0 until there is one
	printed bool
}

// plan says how many tasks are to be run.
func (l *resultLine) plan(tasks int) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tasks = tasks
}

// print prints what text makes of the number of tasks, unless a line is printed already.
func (l *resultLine) print(w io.Writer, text func(tasks int) string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.printLocked(w, text)
}

func (l *resultLine) printLocked(w io.Writer, text func(tasks int) string) {
	if !l.printed {
		l.printed = true
		_, _ = fmt.Fprintln(w, text(l.tasks))
	}
}

// Farewell is what a program prints when a signal ends it at once. Nil is none.
type Farewell struct {
	mu  sync.Mutex // guards say
	say func()
}

// farewellLimit is how long the end waits for whoever reads standard output.
const farewellLimit = time.Second

// Say prints it. It returns after a while though nobody reads.
func (w *Farewell) Say() {
	w.mu.Lock()
	say := w.say
	w.mu.Unlock()
	if say == nil {
		return
	}
	said := make(chan struct{})
	go func() {
		defer close(said)
		say()
	}()
	select {
	case <-said:
	case <-time.After(farewellLimit):
	}
}

func (w *Farewell) set(say func()) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.say = say
}

// WithLine runs a command that runs a job, whose error has the exit code, so that with
// --outcome-line it prints exactly one result line on every exit but that of a bad command
// line: where run printed none, that of a job which failed (outcome mapping, section 12).
func (p *Program) WithLine(f *Flags, run func() error) error {
	if !f.OutcomeLine {
		return run()
	}
	line := &resultLine{}
	f.line = line
	p.Farewell.set(func() {
		line.mu.Lock() // and never unlocked: the program ends, and prints no second one
		line.printLocked(p.Stdout, failedLine(outcome.CancelledError))
	})
	err := run()
	if exitcode.Of(err) != exitcode.Usage {
		line.print(p.Stdout, failedLine(reasonOf(err)))
	}
	return err
}

// reasonOf is the reason code of a job without a result.
func reasonOf(err error) outcome.Code {
	if code := exitcode.Of(err); code == exitcode.Interrupted || code == exitcode.OK { // who was asked said no
		return outcome.CancelledError
	}
	return evaluation.ReasonOf(err)
}

// failedLine makes the line of a job that has no result.
func failedLine(reason outcome.Code) func(tasks int) string {
	return func(tasks int) string {
		o := outcome.Outcome{Status: outcome.Failed, Total: value.NewInt(int64(tasks)), Reason: reason}
		line, err := o.Line()
		if err != nil {
			panic(err) // no number of it is long
		}
		return line
	}
}

// tasksOf counts the tasks of a plan.
func tasksOf(prepared *job.Prepared) int {
	tasks := map[string]bool{}
	for i := range prepared.Trials {
		tasks[job.TaskKey(prepared.Trials[i].Task)] = true
	}
	return len(tasks)
}

// resultLine prints the result line of a job that has ended, or was ended before all of
// its trials were, with the score of a policy where one was asked for: policied, or nil
// where the trials have none.
func (p *Program) resultLine(f *Flags, out *job.Summary, policy *score.Policy, policied *score.PolicyScore) error {
	if f.line == nil {
		return nil
	}
	if why := report.WhyUnfinished(out.Result); why != "" {
		_, _ = fmt.Fprintf(p.Stderr, "%s: warning: the result line is that of an unfinished job: %s\n", p.Name, why)
	}
	if policy != nil && policied == nil && f.Policy.Instead {
		// There is no line in the policy's name without its score.
		reason := outcome.GenericFailed
		if out.Interrupted && out.Budget == nil {
			reason = outcome.CancelledError
		}
		f.line.print(p.Stdout, failedLine(reason))
		return nil
	}
	x := outcome.Explain(out.Result.AppendJSON(nil))
	line, err := x.Outcome.Line()
	if policy != nil {
		line, _, err = PolicyLine(x, policied, f.Policy.Instead)
	}
	if err == nil {
		f.line.print(p.Stdout, func(int) string { return line })
	}
	return err
}
