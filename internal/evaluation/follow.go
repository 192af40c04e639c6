package evaluation

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/proctor-run/proctor/internal/feed"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/trial"
)

// Follower tells a feed how an evaluation goes: the phases of the trials that run, and
// what they log (outcome mapping, sections 15.1 to 15.3). Trials that have a record
// already are not told of.
type Follower struct {
	eval *Evaluation
	feed *feed.Feed
	ctx  context.Context
	stop context.CancelFunc

	tasks map[string]string // by trial
	tails map[string]*tail  // of trials that run
}

// tail follows what an agent prints.
type tail struct {
	stop context.CancelFunc
	wg   sync.WaitGroup
}

func (t *tail) end() {
	t.stop()
	t.wg.Wait()
}

// Follow returns a follower of an evaluation. Close ends it, before the feed.
func (e *Evaluation) Follow(f *feed.Feed) *Follower {
	w := &Follower{eval: e, feed: f, tasks: map[string]string{}, tails: map[string]*tail{}}
	w.ctx, w.stop = context.WithCancel(context.Background())
	for _, p := range e.Plan() {
		w.tasks[p.TrialName] = p.Task
	}
	return w
}

// Assigned tells of the trials that are going to run.
func (w *Follower) Assigned(p *job.Prepared) {
	for _, i := range p.Remaining {
		w.phase(p.Trials[i].TrialName, feed.Assigned)
	}
}

// Event is the Event of a [Runner]. Its calls come one at a time.
func (w *Follower) Event(e job.Event, ended *Ended) {
	if e.Kind != job.EventTrial {
		return
	}
	name := e.Trial.TrialName
	switch e.Trial.Kind {
	case trial.EventStart:
		w.phase(name, feed.Starting)
	case trial.EventAgentSetupStart:
		w.phase(name, feed.Running)
		w.tail(name)
	case trial.EventEnd:
		if t := w.tails[name]; t != nil {
			t.end()
			delete(w.tails, name)
		}
		w.ended(name, ended)
	}
}

func (w *Follower) ended(name string, r *Ended) {
	if r == nil { // it was cancelled, and runs again
		w.phase(name, feed.Failed)
		return
	}
	phase := feed.Completed
	if r.Trial.Status != outcome.Completed {
		phase = feed.Failed
	}
	w.phase(name, phase)
	w.feed.Finished(feed.Trial{
		Task: w.tasks[name], Trial: name, Status: string(r.Trial.Status),
		Agent: r.Agent, Harness: r.Harness(), TestStdout: r.TestOutput,
	})
}

func (w *Follower) phase(name string, p feed.Phase) {
	_ = w.feed.Progress(feed.Progress{Task: w.tasks[name], Trial: name, Phase: p}) // the phase is one that there is
}

// tail follows what the agent of a trial prints, if it is known where.
func (w *Follower) tail(name string) {
	if w.eval.Output == "" || w.tails[name] != nil {
		return
	}
	ctx, stop := context.WithCancel(w.ctx)
	t := &tail{stop: stop}
	w.tails[name] = t
	t.wg.Go(func() {
		ticker := time.NewTicker(feed.TailInterval)
		defer ticker.Stop()
		_ = w.feed.Tail(ctx, feed.Follow{ // best effort: the record has the whole log
			Task: w.tasks[name], Trial: name,
			Dir: filepath.Join(w.eval.JobDir(), name), Name: filepath.Join("agent", w.eval.Output), Tick: ticker.C,
		})
	})
}

// Close ends what follows trials that did not end.
func (w *Follower) Close() {
	w.stop()
	for _, t := range w.tails {
		t.end()
	}
}
