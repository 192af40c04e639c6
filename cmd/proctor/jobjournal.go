package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/report"
)

func printJournal(w io.Writer, s *report.Journal) {
	if s == nil {
		return
	}
	attempts := 0
	for _, t := range s.Trials {
		attempts += len(t.Attempts)
	}
	_, _ = fmt.Fprintf(w, "\nJournal: %s%s; %s of %s begun, %s begun\n",
		count(len(s.Runs), "run"), lastRunText(s.Runs), count(attempts, "attempt"), count(len(s.Trials), "trial"), count(s.Spent.Agents, "agent"))
	if in := ranIn(s.Runs); len(in) > 0 {
		_, _ = fmt.Fprintf(w, "  environment: %s\n", strings.Join(in, ", then "))
	}
	if n := s.Spent.Unknown; n > 0 {
		_, _ = fmt.Fprintf(w, "  what %s took is not known: not seen to end\n", count(n, "agent"))
	}
	if n := s.Spent.Reported; n > 0 {
		_, _ = fmt.Fprintf(w, "  %s reported $%.4f in all\n", count(n, "attempt"), s.Spent.CostUSD)
	}
	for _, b := range s.Outside {
		what := "may be left; 'proctor gc' removes what is"
		switch {
		case b.Kept:
			what = "kept on purpose; 'proctor gc --kept' removes what is"
		case s.InUse(b.Trial):
			what = "in use"
		}
		_, _ = fmt.Fprintf(w, "  %s sandbox %s of %s: %s\n", clean(b.Backend), clean(b.Sandbox), clean(b.Trial), what)
	}
	if s.Problem != "" {
		_, _ = fmt.Fprintf(w, "  problem: %s\n", clean(s.Problem))
	}
}

func lastRunText(runs []report.JournalRun) string {
	if len(runs) == 0 {
		return ""
	}
	r := runs[len(runs)-1]
	switch r.How {
	case report.RunRunning:
		return fmt.Sprintf(", the last one is running (pid %d on %s)", r.PID, clean(r.Host))
	case report.RunKilled:
		return fmt.Sprintf(", the last one was killed (pid %d on %s)", r.PID, clean(r.Host))
	case report.RunFailed:
		return ", the last one failed: " + clean(r.Reason)
	}
	return ", the last one " + clean(string(r.How))
}

// ranIn names what the runs of a job had their sandboxes from, each once.
func ranIn(runs []report.JournalRun) []string {
	var in []string
	for _, r := range runs {
		if r.Backend != "" {
			in = append(in, environmentText(r.Backend, r.Runtime))
		}
	}
	return slices.Compact(in)
}

// environmentText names an environment with its runtime.
func environmentText(backend, runtime string) string {
	if runtime == "" {
		return clean(backend)
	}
	return clean(backend) + ", runtime " + clean(runtime)
}
