package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/report"
)

func newTrialShow(env *Env) *cobra.Command {
	var asJSON bool
	lines := 10
	cmd := &cobra.Command{
		Use:   "show TRIALDIR",
		Short: "Show what became of a trial: the cause of its error, its phases, its logs",
		Long: `show says how a trial ended, the cause of an error first, then when each phase
began and how long it took, and the last lines of its logs. It also works for a
trial that runs or was killed.`,
		Example: `  proctor trial show jobs/2026-06-09__10-00-00/hello-world__AbCdEfG
  proctor trial show --lines 50 jobs/2026-06-09__10-00-00/hello-world__AbCdEfG`,
		Args: oneDirectory("trial"),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := readTrial(args[0], max(lines, 0))
			if err != nil {
				return err
			}
			if asJSON {
				return encodeJSON(env.Stdout, s)
			}
			printTrial(env.Stdout, s)
			return nil
		},
	}
	cmd.Flags().IntVar(&lines, "lines", lines, "show this `number` of lines at the end of each log")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, nothing else")
	return cmd
}

// readTrial reads a trial's directory for people and programs.
func readTrial(dir string, lines int) (*report.Trial, error) {
	t, err := report.ReadTrial(dir, lines)
	if _, ok := errors.AsType[*report.NotFoundError](err); ok {
		return nil, withHint(usageErrorf("%w", err), "'proctor job show' names the trials of a job")
	}
	if _, ok := errors.AsType[*report.InvalidError](err); ok {
		return nil, withHint(usageErrorf("%w", err),
			"if this is a job directory use 'proctor job show'; if the file was cut short, 'proctor job resume' runs the trial again")
	}
	return t, err
}

func printTrial(w io.Writer, s *report.Trial) {
	_, _ = lipgloss.Fprintln(w, console.Bold(clean(s.Trial)))
	_, _ = fmt.Fprintf(w, "task %s, agent %s: %s\n", clean(s.Task), clean(s.Agent), endText(s))
	if s.Notes != nil && s.Notes.Backend != "" {
		_, _ = fmt.Fprintf(w, "environment: %s\n", environmentText(s.Notes.Backend, s.Notes.Runtime))
	}
	if s.Notes != nil && s.Notes.Kept != "" {
		_, _ = fmt.Fprintf(w, "its sandbox is kept: %s\n", clean(s.Notes.Kept))
	}
	if s.Cause != nil {
		printCause(w, s.Cause)
	}
	printNotes(w, s)
	for _, step := range s.Steps {
		text := "rewards " + clean(string(step.Rewards))
		if step.Exception != nil {
			text += fmt.Sprintf(", %s (%s)", clean(step.Exception.Type), step.Exception.ReasonCode)
		}
		_, _ = fmt.Fprintf(w, "step %s: %s\n", clean(step.Name), text)
	}
	if len(s.Earlier) > 0 {
		_, _ = fmt.Fprintf(w, "earlier attempts: %s\n", clean(strings.Join(s.Earlier, ", ")))
	}
	printTimeline(w, s)
	for _, l := range s.Logs {
		_, _ = fmt.Fprintln(w)
		_, _ = lipgloss.Fprintln(w, console.Bold(clean(l.File)))
		if l.Cut {
			_, _ = fmt.Fprintln(w, "  …")
		}
		for _, line := range l.Lines {
			_, _ = fmt.Fprintf(w, "  %s\n", clean(strings.TrimSuffix(line, "\r")))
		}
	}
}

func endText(s *report.Trial) string {
	if s.Document != nil {
		return clean(jobcli.ResultText(s.Document))
	}
	if s.State == report.Running {
		return "it is running"
	}
	return "it has not ended: it runs, or its process was killed"
}

func printCause(w io.Writer, c *report.Cause) {
	where := ""
	if c.Phase != "" {
		where = " in " + clean(c.Phase)
	}
	_, _ = fmt.Fprintf(w, "\ncause%s: %s (%s)\n", where, clean(c.Type), c.ReasonCode)
	for line := range strings.Lines(c.Message) {
		_, _ = fmt.Fprintf(w, "  %s\n", clean(strings.TrimRight(line, "\r\n")))
	}
}

// printNotes tells what proctor noted beside the result: later errors, and what
// the evidence shows.
func printNotes(w io.Writer, s *report.Trial) {
	n := s.Notes
	if n == nil {
		return
	}
	for _, e := range n.Errors {
		if s.Cause != nil && e.Type == s.Cause.Type && e.Message == s.Cause.Message {
			continue
		}
		message, _, _ := strings.Cut(e.Message, "\n")
		_, _ = fmt.Fprintf(w, "also in %s: %s: %s\n", clean(e.Phase), clean(e.Type), clean(message))
	}
	if k := n.AgentKilled; k != nil {
		text := "all its processes are proven gone"
		if !k.ProvenGone {
			text = "not proven gone: " + clean(k.Error)
		}
		_, _ = fmt.Fprintf(w, "agent ended by force: %s\n", text)
	}
	for _, x := range n.Suspicions() {
		_, _ = fmt.Fprintf(w, "evidence: %s\n", clean(x))
	}
	for _, x := range n.Warnings {
		_, _ = fmt.Fprintf(w, "warning: %s\n", clean(x))
	}
}

// timelineWidth is the width of the bars, in columns.
const timelineWidth = 40

func printTimeline(w io.Writer, s *report.Trial) {
	if len(s.Phases) == 0 {
		return
	}
	end := 0.0
	if s.Result != nil {
		end = s.Result.Seconds
	}
	for _, p := range s.Phases {
		end = max(end, p.Offset+p.Seconds)
	}
	t := console.NewTable("Phase", "Begins", "Takes", "")
	for _, p := range s.Phases {
		t.Row(clean(p.Name), "+"+seconds(p.Offset), seconds(p.Seconds), bar(p, end))
	}
	_, _ = fmt.Fprintln(w)
	_, _ = lipgloss.Fprintln(w, t.Render())
}

// bar shows a phase on a line that is the whole trial.
func bar(p report.Phase, end float64) string {
	if end <= 0 {
		return ""
	}
	column := func(at float64) int {
		return min(max(int(at/end*timelineWidth), 0), timelineWidth)
	}
	from := min(column(p.Offset), timelineWidth-1)
	to := max(column(p.Offset+p.Seconds), from+1)
	return strings.Repeat(" ", from) + strings.Repeat("█", to-from) + strings.Repeat(" ", timelineWidth-to)
}
