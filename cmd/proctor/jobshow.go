package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/report"
)

func newJobShow(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show JOBDIR",
		Short: "Show how the trials of a job ended, what it scored and where time went",
		Long: `show reads the trials of a job and counts how they ended, says how many of the
planned trials have a reward, gives the mean of each group with an interval,
lists the errors with their trials and the phases that took longest.

The mean is over tasks, each by the mean of its attempts, and trials without a
reward count as 0. The interval holds the mean of all tasks of the kind with a
confidence of 95%. Attempts at a task agree when they have the same rewards, or
none; the flake rate is the probability that two of them do not.`,
		Example: `  proctor job show jobs/2026-06-09__10-00-00
  proctor job show --json jobs/2026-06-09__10-00-00`,
		Args: oneDirectory("job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := readJob(cmd.Context(), env, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return encodeJSON(env.Stdout, j)
			}
			printJob(env.Stdout, j)
			printHowToResume(env.Stdout, j)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, nothing else")
	return cmd
}

// printHowToResume prints the command that resumes a job that nobody runs any more.
func printHowToResume(w io.Writer, j *report.Job) {
	if command := howToResume(j.Dir, j.State); command != "" {
		_, _ = fmt.Fprintf(w, "\nTo resume it: %s\n", command)
	}
}

// howToResume is the command that resumes the job in a directory; empty where that cannot
// be, or need not.
func howToResume(dir string, state report.State) string {
	if state != report.Unfinished {
		return ""
	}
	cfg, err := job.StoredConfig(dir)
	if err != nil {
		return ""
	}
	return jobcli.ResumeCommand(resumeCommand, dir, cfg, false)
}

// oneDirectory wants one directory of a kind.
func oneDirectory(kind string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return withHint(usageErrorf("accepts one %s directory, got %d", kind, len(args)), "'%s --help' shows an example", cmd.CommandPath())
		}
		return nil
	}
}

// classTexts say the classes in words, in the order in which they are shown.
var classTexts = []classText{
	{jobdir.ClassScored, "scored"},
	{jobdir.ClassErroredWithReward, "errored, with a reward"},
	{jobdir.ClassErroredWithoutReward, "errored, without a reward"},
	{jobdir.ClassCancelled, "cancelled"},
	{jobdir.ClassUnscored, "no error and no reward"},
	{report.ClassUnreadable, "result cannot be read"},
	{report.ClassUnfinished, "never ended"},
	{report.ClassNotRun, "never began"},
}

// classText says a class in words.
type classText struct {
	class jobdir.Class
	text  string
}

// outcomeTexts are the classes that trials of a job are in. Those of one that is running
// may come to an end yet.
func outcomeTexts(j *report.Job) []classText {
	var texts []classText
	for _, c := range classTexts {
		if j.Outcomes[c.class] == 0 {
			continue
		}
		if j.State == report.Running {
			switch c.class {
			case report.ClassUnfinished:
				c.text = "running"
			case report.ClassNotRun:
				c.text = "waiting"
			}
		}
		texts = append(texts, c)
	}
	return texts
}

// readJob reads a job's directory for people and programs.
func readJob(ctx context.Context, env *Env, dir string) (*report.Job, error) {
	j, err := report.ReadJob(ctx, dir, env.Now().Location())
	if _, ok := errors.AsType[*report.NotFoundError](err); ok {
		return nil, withHint(usageErrorf("%w", err), "'proctor job list' lists the jobs")
	}
	return j, err
}

func printJob(w io.Writer, s *report.Job) {
	_, _ = lipgloss.Fprintln(w, console.Bold(clean(s.Dir)))
	_, _ = fmt.Fprintf(w, "%s%s\n\n", s.State, timesText(s))
	for _, p := range s.Problems {
		_, _ = fmt.Fprintf(w, "problem: %s\n", clean(p))
	}
	t := console.NewTable("Outcome", "Trials")
	for _, c := range outcomeTexts(s) {
		t.Row(c.text, strconv.Itoa(s.Outcomes[c.class]))
	}
	t.Row("planned", strconv.Itoa(s.Planned))
	_, _ = lipgloss.Fprintln(w, t.Render())
	_, _ = fmt.Fprintf(w, "Coverage: %d of %s a reward%s\n\n", s.WithReward, console.CountHave(s.Planned, "planned trial"), percentText(float64(s.Coverage)))
	printSuspicions(w, s)
	for _, g := range s.Groups {
		_, _ = lipgloss.Fprintln(w, console.Bold(clean(g.Group)))
		jobcli.PrintGroupStatistics(w, g)
		_, _ = fmt.Fprintln(w)
	}
	printErrors(w, s.Exceptions)
	printPhases(w, s)
	printJournal(w, s.Journal)
}

// printSuspicions says in one line that the verifications of a job have left some.
func printSuspicions(w io.Writer, s *report.Job) {
	if s.Journal != nil {
		jobcli.PrintSuspicions(w, s.Dir, s.Journal.Suspicious, s.Journal.Suspicions)
	}
}

func timesText(s *report.Job) string {
	if s.Started == nil {
		return ""
	}
	text := ", started " + s.Started.Format("2006-01-02 15:04:05")
	if s.Finished != nil {
		text += ", took " + console.Runtime(s.Finished.Sub(*s.Started))
	}
	return text
}

func percentText(share float64) string {
	if math.IsNaN(share) {
		return ""
	}
	return fmt.Sprintf(" (%.1f%%)", 100*share)
}

func printErrors(w io.Writer, errs []report.ExceptionSummary) {
	if len(errs) == 0 {
		return
	}
	t := console.NewTable("Exception", "Reason", "Count", "Trials")
	for _, e := range errs {
		names := cleanAll(e.Trials[:min(len(e.Trials), maxUnfinished)])
		if len(names) < len(e.Trials) {
			names = append(names, "…")
		}
		t.Row(clean(e.Type), string(e.ReasonCode), strconv.Itoa(len(e.Trials)), strings.Join(names, "\n"))
	}
	_, _ = lipgloss.Fprintln(w, t.Render())
	_, _ = fmt.Fprintln(w)
}

func cleanAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = clean(s)
	}
	return out
}

func printPhases(w io.Writer, s *report.Job) {
	if len(s.Phases) == 0 {
		return
	}
	t := console.NewTable("Phase", "Count", "Total", "Median", "Longest")
	for _, p := range s.Phases {
		t.Row(string(p.Phase), strconv.Itoa(p.Trials), seconds(p.Total), seconds(p.Median), seconds(p.Longest))
	}
	_, _ = lipgloss.Fprintln(w, t.Render())
	_, _ = fmt.Fprintln(w, "Slowest:")
	for _, p := range s.Slowest {
		_, _ = fmt.Fprintf(w, "  %s  %s of %s\n", seconds(p.Seconds), clean(p.Phase), clean(p.Trial))
	}
}

func seconds(s float64) string {
	return console.Seconds(s)
}
