package main

import (
	"fmt"
	"github.com/proctor-run/proctor/jobdir/journal"
	"io"
	"strings"
	"time"
)

// journalSummary is what job show says of a job's journal.
type journalSummary struct {
	Runs   []journalRun   `json:"runs"`
	Trials []journalTrial `json:"trials"`
	// Outside is what was made outside of the job directory and not removed as
	// far as the journal knows.
	Outside []journalOutside `json:"outside"`
	Spent   journalSpent     `json:"spent"`
	// Problem says what of the journal cannot be read.
	Problem string `json:"problem,omitempty"`
}

type journalRun struct {
	Started time.Time  `json:"started_at"`
	Ended   *time.Time `json:"ended_at"`
	// How it ended: finished, interrupted, failed, killed; or running.
	How     string `json:"how"`
	PID     int    `json:"pid"`
	Host    string `json:"host"`
	Version string `json:"version"`
	Reason  string `json:"reason,omitempty"`
}

type journalTrial struct {
	Trial    string           `json:"trial"`
	Attempts []journalAttempt `json:"attempts"`
}

type journalAttempt struct {
	Attempt   int        `json:"attempt"`
	Started   time.Time  `json:"started_at"`
	Agent     *time.Time `json:"agent_started_at"`
	Finished  *time.Time `json:"finished_at"`
	Exception string     `json:"exception,omitempty"`
	CostUSD   *float64   `json:"cost_usd"`
	SetAside  string     `json:"set_aside,omitempty"`
}

type journalOutside struct {
	Trial   string `json:"trial"`
	Backend string `json:"backend"`
	Sandbox string `json:"sandbox"`
	Kept    bool   `json:"kept"`
}

type journalSpent struct {
	Agents       int     `json:"n_agents"`
	Unknown      int     `json:"n_unknown"`
	Reported     int     `json:"n_reported"`
	CostUSD      float64 `json:"cost_usd"`
	InputTokens  string  `json:"input_tokens"`
	OutputTokens string  `json:"output_tokens"`
}

// readJournalSummary is nil for a job without a journal, such as one of Harbor.
func readJournalSummary(dir string) *journalSummary {
	j, err := journal.Load(dir)
	if err == nil && len(j.Entries) == 0 && !j.Torn {
		return nil
	}
	state := journal.NewState(j)
	s := &journalSummary{Runs: []journalRun{}, Trials: []journalTrial{}, Outside: []journalOutside{}}
	if err != nil {
		s.Problem = err.Error()
	}
	for i, r := range state.Runs {
		s.Runs = append(s.Runs, newJournalRun(r, i == len(state.Runs)-1))
	}
	for _, t := range state.Trials {
		s.Trials = append(s.Trials, newJournalTrial(t))
	}
	for _, b := range state.Outside() {
		s.Outside = append(s.Outside, journalOutside{b.Trial, b.Backend, b.ID, b.Kept})
	}
	spent := state.Spent()
	s.Spent = journalSpent{
		spent.Agents, spent.Unknown, spent.Reported, spent.CostUSD, spent.InputTokens.String(), spent.OutputTokens.String(),
	}
	return s
}

func newJournalRun(r journal.Run, last bool) journalRun {
	out := journalRun{Started: r.Start.Time, How: "killed", Host: r.Start.Host, Version: r.Start.Version}
	owner := r.Start.Owner
	if owner != nil {
		out.PID = owner.PID
	}
	switch {
	case r.End != nil:
		out.Ended, out.Reason = &r.End.Time, r.End.Reason
		out.How = strings.TrimPrefix(string(r.End.Kind), "job_")
	case last && owner != nil && (r.Start.Host != hostName() || owner.Alive()):
		out.How = "running"
	}
	return out
}

func newJournalTrial(t *journal.Trial) journalTrial {
	out := journalTrial{Trial: t.Name, Attempts: []journalAttempt{}}
	for _, a := range t.Attempts {
		attempt := journalAttempt{Attempt: a.Number, Started: a.Started, SetAside: a.SetAside}
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

func printJournal(w io.Writer, s *journalSummary) {
	if s == nil {
		return
	}
	attempts := 0
	for _, t := range s.Trials {
		attempts += len(t.Attempts)
	}
	_, _ = fmt.Fprintf(w, "\nJournal: %s%s; %s of %s begun, %s begun\n",
		count(len(s.Runs), "run"), lastRunText(s.Runs), count(attempts, "attempt"), count(len(s.Trials), "trial"), count(s.Spent.Agents, "agent"))
	if n := s.Spent.Unknown; n > 0 {
		_, _ = fmt.Fprintf(w, "  what %s took is not known: not seen to end\n", count(n, "agent"))
	}
	if n := s.Spent.Reported; n > 0 {
		_, _ = fmt.Fprintf(w, "  %s reported $%.4f in all\n", count(n, "attempt"), s.Spent.CostUSD)
	}
	for _, b := range s.Outside {
		what := "may be left; 'proctor gc' removes what is"
		if b.Kept {
			what = "kept on purpose"
		}
		_, _ = fmt.Fprintf(w, "  %s sandbox %s of %s: %s\n", clean(b.Backend), clean(b.Sandbox), clean(b.Trial), what)
	}
	if s.Problem != "" {
		_, _ = fmt.Fprintf(w, "  problem: %s\n", clean(s.Problem))
	}
}

func lastRunText(runs []journalRun) string {
	if len(runs) == 0 {
		return ""
	}
	r := runs[len(runs)-1]
	switch r.How {
	case "running":
		return fmt.Sprintf(", the last one is running (pid %d on %s)", r.PID, clean(r.Host))
	case "killed":
		return fmt.Sprintf(", the last one was killed (pid %d on %s)", r.PID, clean(r.Host))
	case "failed":
		return ", the last one failed: " + clean(r.Reason)
	}
	return ", the last one " + clean(r.How)
}
