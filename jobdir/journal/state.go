package journal

import (
	"cmp"
	"math/big"
	"slices"
	"time"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/procid"
)

// State is what a journal comes to.
type State struct {
	// Runs of the job, each by one process, in order.
	Runs []Run
	// Trials in the order in which they were begun first.
	Trials []*Trial
	// Retries is how often a trial was tried again within a run.
	Retries int
	// Written is the last time that the result was aggregated anew, since a run ended.
	Written *Entry
	// Torn and Chain are as in [Journal].
	Torn  bool
	Chain Chain

	ByName map[string]*Trial
}

// Run is one start of a job.
type Run struct {
	Start Entry
	// End is nil when it did not say how it ended: its process was killed, or
	// is still there.
	End *Entry
	// Inputs is nil when they were not written, or by a proctor that did not say so.
	Inputs *Entry
}

// Trial is what the journal knows of a trial.
type Trial struct {
	Name, Task string
	Plan       string // digest of what it asks for, of the last attempt
	Attempts   []Attempt
}

// keep takes a result that a run found: that of the last attempt, if its end is not known.
func (t *Trial) keep(e *Entry, run int) {
	if n := len(t.Attempts); n > 0 && t.Attempts[n-1].Finish == nil && t.Attempts[n-1].SetAside == "" {
		t.Attempts[n-1].Finish = e
		return
	}
	t.Attempts = append(t.Attempts, Attempt{Number: max(1, e.Attempt), Finish: e, run: run})
}

// Found reports whether no run made the trial: one found its result.
func (t *Trial) Found() bool {
	return !slices.ContainsFunc(t.Attempts, func(a Attempt) bool { return !a.Started.IsZero() })
}

// Ended reports whether the last attempt ended, and still has its place.
func (t *Trial) Ended() bool {
	n := len(t.Attempts)
	return n > 0 && t.Attempts[n-1].Finish != nil && t.Attempts[n-1].SetAside == ""
}

// Attempt is one attempt of a trial.
type Attempt struct {
	Number  int
	Started time.Time // zero for one that was found
	// Agent: when the agent began to work, zero if it did not.
	Agent time.Time
	// Finish is nil when the attempt was not seen to end.
	Finish *Entry
	// Sandboxes that were made for it.
	Sandboxes []Sandbox
	// SetAside says why its files were moved to attempts/; "" if they were not.
	SetAside string

	run int // number of runs that had begun
}

// Sandbox is something that was made outside of the job directory.
type Sandbox struct {
	Trial, Backend, ID string
	Created            time.Time
	// Gone: it was removed. Kept: it was stopped and left on purpose.
	Gone, Kept bool
}

// NewState goes through a journal. Entries that make no sense where they
// stand are passed over.
func NewState(j Journal) *State {
	s := newState()
	s.Torn, s.Chain = j.Torn, j.Chain
	for _, e := range j.Entries {
		s.add(e)
	}
	return s
}

func newState() *State { return &State{ByName: map[string]*Trial{}} }

func (s *State) add(e Entry) {
	switch e.Kind {
	case JobStarted, JobResumed:
		s.cleaned(e.Backend)
		s.Runs = append(s.Runs, Run{Start: e})
	case InputsWritten:
		if n := len(s.Runs); n > 0 {
			s.Runs[n-1].Inputs = &e
		}
	case ResultWritten:
		s.Written = &e
	case JobFinished, JobInterrupted, JobFailed:
		s.Written = nil
		if n := len(s.Runs); n > 0 {
			s.Runs[n-1].End = &e
		}
	case TrialKept:
		t := s.trial(e.Trial)
		t.Task = cmp.Or(t.Task, e.Task)
		t.keep(&e, len(s.Runs))
	case TrialStarted:
		t := s.trial(e.Trial)
		t.Task, t.Plan = e.Task, e.Plan
		if a := s.last(e.Trial); a != nil && a.Finish != nil && a.run == len(s.Runs) {
			s.Retries++
		}
		t.Attempts = append(t.Attempts, Attempt{Number: e.Attempt, Started: e.Time, run: len(s.Runs)})
	default:
		if a := s.last(e.Trial); a != nil {
			a.add(e)
		}
	}
}

func (a *Attempt) add(e Entry) {
	switch e.Kind {
	case AgentStarted:
		if a.Agent.IsZero() { // once per step
			a.Agent = e.Time
		}
	case TrialFinished:
		a.Finish = &e
	case SetAside:
		a.SetAside = e.Reason
	case SandboxCreated:
		a.Sandboxes = append(a.Sandboxes, Sandbox{Trial: e.Trial, Backend: e.Backend, ID: e.Sandbox, Created: e.Time})
	case SandboxRemoved, SandboxKept:
		for i := range a.Sandboxes {
			if b := &a.Sandboxes[i]; b.ID == e.Sandbox && b.Backend == e.Backend {
				b.Gone, b.Kept = e.Kind == SandboxRemoved, e.Kind == SandboxKept
			}
		}
	}
}

func (s *State) trial(name string) *Trial {
	t, ok := s.ByName[name]
	if !ok {
		t = &Trial{Name: name}
		s.ByName[name] = t
		s.Trials = append(s.Trials, t)
	}
	return t
}

// last is the last attempt of a trial, nil if there is none.
func (s *State) last(name string) *Attempt {
	t, ok := s.ByName[name]
	if !ok || len(t.Attempts) == 0 {
		return nil
	}
	return &t.Attempts[len(t.Attempts)-1]
}

// neverEnded says how far a trial came that left no result.
func (s *State) NeverEnded(name string) string {
	if a := s.last(name); a != nil && a.Finish == nil && !a.Agent.IsZero() {
		return "it never ended; its agent had begun"
	}
	return "it never ended"
}

// cleaned takes it that what dead runs left in a backend is gone: every run
// removes that before it starts.
func (s *State) cleaned(backend string) {
	for _, t := range s.Trials {
		for i := range t.Attempts {
			for k := range t.Attempts[i].Sandboxes {
				if b := &t.Attempts[i].Sandboxes[k]; b.Backend == backend && !b.Kept {
					b.Gone = true
				}
			}
		}
	}
}

// Running is the owner of the last run when it has not said how it ended; nil
// otherwise. Its process may have been killed, see [procid.ID.Alive].
func (s *State) Running() *procid.ID {
	if n := len(s.Runs); n > 0 && s.Runs[n-1].End == nil {
		return s.Runs[n-1].Start.Owner
	}
	return nil
}

// Outside lists what was made outside of the job directory and not removed as
// far as the journal knows, in order. Cleaning up after a killed run is not
// written here.
func (s *State) Outside() []Sandbox {
	var list []Sandbox
	for _, t := range s.Trials {
		for _, a := range t.Attempts {
			for _, b := range a.Sandboxes {
				if !b.Gone {
					list = append(list, b)
				}
			}
		}
	}
	return list
}

// Results are the digests of the results of trials whose last attempt ended.
func (s *State) Results() map[string]jobdir.FileDigest {
	digests := map[string]jobdir.FileDigest{}
	for _, t := range s.Trials {
		if e := s.Finish(t.Name); e != nil && e.ResultDigest != nil {
			digests[t.Name] = *e.ResultDigest
		}
	}
	return digests
}

// Finish is the end of a trial's last attempt; nil unless that ended, and has its place.
func (s *State) Finish(name string) *Entry {
	if t := s.ByName[name]; t != nil && t.Ended() {
		return t.Attempts[len(t.Attempts)-1].Finish
	}
	return nil
}

// Suspicious is the number of trials in whose verification something was conspicuous, and
// of all that was.
func (s *State) Suspicious() (trials, suspicions int) {
	for _, t := range s.Trials {
		if e := s.Finish(t.Name); e != nil && e.Suspicions > 0 {
			trials, suspicions = trials+1, suspicions+e.Suspicions
		}
	}
	return trials, suspicions
}

// Spent is what was paid for over all attempts, also those whose
// results do not count.
type Spent struct {
	// Agents is the number of times an agent began to work; of Unknown of them
	// it is not known what they took, for they were not seen to end.
	Agents, Unknown int
	// Reported of the others said what they cost, CostUSD in all.
	Reported int
	CostUSD  float64
	// Tokens, as far as they were reported.
	InputTokens, OutputTokens *big.Int
}

// Spent adds up what was paid for.
func (s *State) Spent() Spent {
	sum := Spent{InputTokens: new(big.Int), OutputTokens: new(big.Int)}
	for _, t := range s.Trials {
		for _, a := range t.Attempts {
			sum.add(a)
		}
	}
	return sum
}

func (s *Spent) add(a Attempt) {
	if !a.Agent.IsZero() {
		s.Agents++
	}
	if a.Finish == nil {
		if !a.Agent.IsZero() {
			s.Unknown++
		}
		return
	}
	if a.Finish.CostUSD != nil {
		s.Reported++
		s.CostUSD += *a.Finish.CostUSD
	}
	if n, ok := new(big.Int).SetString(string(a.Finish.InputTokens), 10); ok {
		s.InputTokens.Add(s.InputTokens, n)
	}
	if n, ok := new(big.Int).SetString(string(a.Finish.OutputTokens), 10); ok {
		s.OutputTokens.Add(s.OutputTokens, n)
	}
}
