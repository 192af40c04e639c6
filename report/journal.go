package report

import (
	"os"
	"slices"
	"strings"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/jobdir/journal"
)

// Journal sums up what proctor wrote down while it ran a job: each run of the job,
// the attempts at its trials, what was made outside of its directory, and what
// agents spent. Attempts that were set aside count too.
type Journal struct {
	Runs   []JournalRun   `json:"runs"`
	Trials []JournalTrial `json:"trials"`
	// Outside is what was made outside of the job directory and not removed as
	// far as the journal knows.
	Outside []LeftOutside `json:"outside"`
	Spent   Spent         `json:"spent"`
	// Suspicions is how many things were conspicuous in the verifications of Suspicious
	// trials.
	Suspicions int `json:"n_suspicions"`
	Suspicious int `json:"n_suspicious_trials"`
	// Problem says what of the journal cannot be read.
	Problem string `json:"problem,omitempty"`
}

// RunEnd says how a run of a job ended.
type RunEnd string

// The ends of runs. A run without a noted end was killed, unless its process lives.
const (
	RunFinished    RunEnd = "finished"
	RunInterrupted RunEnd = "interrupted"
	RunFailed      RunEnd = "failed"
	RunKilled      RunEnd = "killed"
	RunRunning     RunEnd = "running"
)

// JournalRun is one run of the job: its start, or that of a resume.
type JournalRun struct {
	Started time.Time  `json:"started_at"`
	Ended   *time.Time `json:"ended_at"`
	// How it ended, or that it runs.
	How     RunEnd `json:"how"`
	PID     int    `json:"pid"`
	Host    string `json:"host"`
	Version string `json:"version"`
	Reason  string `json:"reason,omitempty"`
	// Backend made its sandboxes, with Runtime where there is a choice of that.
	Backend string `json:"backend,omitempty"`
	Runtime string `json:"runtime,omitempty"`
}

// JournalTrial has the attempts at a trial in order.
type JournalTrial struct {
	Trial    string           `json:"trial"`
	Attempts []JournalAttempt `json:"attempts"`
}

// JournalAttempt is one attempt at a trial: when it, its agent and its end were
// noted (null where they were not), and what it cost in US dollars, as far as that
// was reported.
type JournalAttempt struct {
	Attempt   int        `json:"attempt"`
	Started   *time.Time `json:"started_at"`
	Agent     *time.Time `json:"agent_started_at"`
	Finished  *time.Time `json:"finished_at"`
	Exception string     `json:"exception,omitempty"`
	CostUSD   *float64   `json:"cost_usd"`
	SetAside  string     `json:"set_aside,omitempty"`
}

// LeftOutside is a sandbox that may still exist; one that was kept on purpose has
// Kept.
type LeftOutside struct {
	Trial   string `json:"trial"`
	Backend string `json:"backend"`
	Sandbox string `json:"sandbox"`
	Kept    bool   `json:"kept"`
}

// Spent is what the agents of all attempts took: how many began, of how many the
// end was not seen, and how many reported a cost; US dollars, and tokens as decimal
// integers.
type Spent struct {
	Agents       int     `json:"n_agents"`
	Unknown      int     `json:"n_unknown"`
	Reported     int     `json:"n_reported"`
	CostUSD      float64 `json:"cost_usd"`
	InputTokens  string  `json:"input_tokens"`
	OutputTokens string  `json:"output_tokens"`
}

// ReadJournal reads the journal in a job's directory. It is nil for a job without
// one, such as one of Harbor; what cannot be read of one is its Problem.
func ReadJournal(dir string) *Journal {
	j, err := journal.Load(dir)
	if err == nil && len(j.Entries) == 0 && !j.Torn {
		return nil
	}
	state := journal.NewState(j)
	s := &Journal{Runs: []JournalRun{}, Trials: []JournalTrial{}, Outside: []LeftOutside{}}
	if err != nil {
		s.Problem = exception.PlainText(err)
	}
	for i, r := range state.Runs {
		s.Runs = append(s.Runs, newJournalRun(r, i == len(state.Runs)-1))
	}
	for _, t := range state.Trials {
		s.Trials = append(s.Trials, newJournalTrial(t))
	}
	for _, b := range state.Outside() {
		s.Outside = append(s.Outside, LeftOutside{b.Trial, b.Backend, b.ID, b.Kept})
	}
	s.Suspicious, s.Suspicions = state.Suspicious()
	spent := state.Spent()
	s.Spent = Spent{
		spent.Agents, spent.Unknown, spent.Reported, spent.CostUSD, spent.InputTokens.String(), spent.OutputTokens.String(),
	}
	return s
}

// InUse reports whether the last run is running and has begun a trial that has not ended.
func (j *Journal) InUse(trial string) bool {
	if len(j.Runs) == 0 {
		return false
	}
	run := j.Runs[len(j.Runs)-1]
	return run.How == RunRunning && slices.ContainsFunc(j.Trials, func(t JournalTrial) bool {
		if t.Trial != trial || len(t.Attempts) == 0 {
			return false
		}
		last := t.Attempts[len(t.Attempts)-1]
		return last.Finished == nil && last.SetAside == "" && !last.Started.Before(run.Started)
	})
}

func newJournalRun(r journal.Run, last bool) JournalRun {
	out := JournalRun{Started: r.Start.Time, How: RunKilled, Host: r.Start.Host, Version: r.Start.Version, Backend: r.Start.Backend, Runtime: r.Start.Runtime}
	owner := r.Start.Owner
	if owner != nil {
		out.PID = owner.PID
	}
	switch {
	case r.End != nil:
		out.Ended, out.Reason = &r.End.Time, r.End.Reason
		out.How = RunEnd(strings.TrimPrefix(string(r.End.Kind), "job_"))
	case last && owner != nil && (r.Start.Host != hostName() || owner.Alive()):
		out.How = RunRunning
	}
	return out
}

func newJournalTrial(t *journal.Trial) JournalTrial {
	out := JournalTrial{Trial: t.Name, Attempts: []JournalAttempt{}}
	for _, a := range t.Attempts {
		attempt := JournalAttempt{Attempt: a.Number, SetAside: a.SetAside}
		if !a.Started.IsZero() {
			attempt.Started = &a.Started
		}
		if !a.Agent.IsZero() {
			attempt.Agent = &a.Agent
		}
		if a.Finish != nil {
			attempt.Finished, attempt.Exception, attempt.CostUSD = &a.Finish.Time, a.Finish.Exception, a.Finish.CostUSD
		}
		out.Attempts = append(out.Attempts, attempt)
	}
	return out
}

// hostName is the name of this machine, empty if it has none.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}
