package main

import (
	"fmt"
	"io"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/job/taskcheck"
)

// jsonChecked is what task check --json prints per task.
type jsonChecked struct {
	*taskcheck.Report
	// JobsDir holds the trials; null when they were removed.
	JobsDir *string `json:"jobs_dir"`
}

// printChecked shows what the checks found: of one task everything, of several
// what is not as it should be, and a table of all.
func printChecked(w io.Writer, f *checkFlags, tasks []*taskcheck.Subject, kept string) error {
	if f.json {
		for _, t := range tasks {
			out := jsonChecked{Report: t.Report}
			if kept != "" {
				out.JobsDir = &kept
			}
			if err := encodeJSON(w, out); err != nil {
				return err
			}
		}
		return nil
	}
	for _, t := range tasks {
		printOneChecked(w, t.Report, len(tasks) == 1)
	}
	if len(tasks) > 1 {
		printOverview(w, tasks)
	}
	return nil
}

func printOneChecked(w io.Writer, r *taskcheck.Report, everything bool) {
	if !everything && r.Worst() == taskcheck.Pass {
		return
	}
	_, _ = lipgloss.Fprintln(w, console.Bold(clean(r.Task)))
	for _, c := range r.Checks {
		if !everything && c.Status == taskcheck.Pass {
			continue
		}
		_, _ = fmt.Fprintf(w, "  %s  %-14s  %s\n", c.Status, c.Name, clean(c.Message))
		if c.Fix != "" {
			_, _ = fmt.Fprintf(w, "        %-14s  fix: %s\n", "", clean(c.Fix))
		}
	}
	_, _ = fmt.Fprintln(w)
	if everything {
		printAttempts(w, r.Tried)
		printCheckedPhases(w, r.Phases)
	}
}

func printAttempts(w io.Writer, tried []taskcheck.AttemptResult) {
	if len(tried) == 0 {
		return
	}
	t := console.NewTable("Attempt on the reward", "Allowed", "Effect", "Noticed")
	for _, a := range tried {
		noticed := "no"
		if len(a.Noticed) > 0 {
			noticed = "yes"
		}
		effect := string(a.Effect)
		if a.Effect == taskcheck.EffectLost && a.Exception != "" {
			effect += ": " + clean(a.Exception)
		}
		t.Row(a.Name+": "+a.Description, allowedText(a), effect, noticed)
	}
	_, _ = lipgloss.Fprintln(w, t.Render())
	_, _ = fmt.Fprintln(w)
}

// allowedText says how much of an attempt the sandbox allowed.
func allowedText(a taskcheck.AttemptResult) string {
	switch {
	case len(a.Done)+len(a.Denied) == 0:
		return "unknown"
	case len(a.Denied) == 0:
		return "yes"
	case len(a.Done) == 0:
		return "no"
	}
	return "in part"
}

func printCheckedPhases(w io.Writer, phases []taskcheck.Phase) {
	if len(phases) == 0 {
		return
	}
	t := console.NewTable("Phase", "Runs", "Median", "Longest")
	for _, p := range phases {
		t.Row(p.Name, fmt.Sprint(p.Trials), seconds(p.Median), seconds(p.Longest))
	}
	_, _ = lipgloss.Fprintln(w, t.Render())
}

// overviewChecks are the columns of the table of several tasks.
var overviewChecks = []string{
	taskcheck.CheckFiles, taskcheck.CheckOracle, taskcheck.CheckNop, taskcheck.CheckRepeats, taskcheck.CheckNetwork, taskcheck.CheckChannel,
}

func printOverview(w io.Writer, tasks []*taskcheck.Subject) {
	header := []string{"Task"}
	for _, name := range overviewChecks {
		header = append(header, console.TitleCase(name))
	}
	t := console.NewTable(append(header, "Time")...)
	worst := map[taskcheck.Status]int{}
	for _, task := range tasks {
		worst[task.Report.Worst()]++
		row := []string{clean(task.Dir)}
		for _, name := range overviewChecks {
			row = append(row, statusOf(task.Report, name))
		}
		sum := 0.0
		for _, p := range task.Report.Phases {
			sum += p.Median
		}
		time := "-"
		if len(task.Report.Phases) > 0 {
			time = seconds(sum)
		}
		t.Row(append(row, time)...)
	}
	_, _ = lipgloss.Fprintln(w, t.Render())
	parts := []string{}
	for _, s := range []taskcheck.Status{taskcheck.Pass, taskcheck.Warn, taskcheck.Fail} {
		if worst[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", worst[s], s))
		}
	}
	_, _ = fmt.Fprintf(w, "%s: %s\n", count(len(tasks), "task"), strings.Join(parts, ", "))
}

func statusOf(r *taskcheck.Report, name string) string {
	for _, c := range r.Checks {
		if c.Name == name {
			return string(c.Status)
		}
	}
	return "-"
}
