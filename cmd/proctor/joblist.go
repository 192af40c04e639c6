package main

import (
	"fmt"
	"io"
	"path/filepath"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/report"
)

func newJobList(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [DIR]",
		Short: "List the jobs of a directory, newest first",
		Long: `list shows what each job's result.json says: when it started, how many of its
trials are done, how many of these have an exception, and the first metric of
its first group. DIR is "jobs" unless given.`,
		Example: `  proctor job list
  proctor job list /data/jobs --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return withHint(usageErrorf("accepts one directory of jobs, got %d", len(args)), "proctor job %s", cmd.Use)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "jobs"
			if len(args) == 1 {
				dir = args[0]
			}
			return listJobs(env, dir, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per job, nothing else")
	return cmd
}

func listJobs(env *Env, dir string, asJSON bool) error {
	jobs, err := report.ReadJobs(dir, env.Now().Location())
	if err != nil {
		return withHint(usageErrorf("reading the jobs: %w", err), "name the directory that holds the jobs: proctor job list DIR")
	}
	if asJSON {
		for _, j := range jobs {
			if err := encodeJSON(env.Stdout, j); err != nil {
				return err
			}
		}
		return nil
	}
	if len(jobs) == 0 {
		return noJobs(env, dir)
	}
	t := console.NewTable("Job", "Started", "Trials", "Exceptions", "Result", "State")
	for _, j := range jobs {
		started := "-"
		if j.Started != nil {
			started = j.Started.Format("2006-01-02 15:04:05")
		}
		t.Row(clean(j.Name), started, fmt.Sprintf("%d/%d", j.Completed, j.Total), fmt.Sprint(j.Errored), clean(headlineText(j)), string(j.State))
	}
	_, _ = lipgloss.Fprintln(env.Stdout, t.Render())
	printResumes(env.Stdout, jobs)
	return nil
}

// maxResumes is of how many jobs the command that resumes them is printed: the newest,
// which somebody may still want.
const maxResumes = 5

// printResumes prints the commands that resume jobs that nobody runs any more.
func printResumes(w io.Writer, jobs []report.ListedJob) {
	n := 0
	for _, j := range jobs {
		command := howToResume(j.Dir, j.State)
		if command == "" {
			continue
		}
		if n++; n > maxResumes {
			return
		}
		_, _ = fmt.Fprintf(w, "To resume %s: %s\n", clean(j.Name), command)
	}
}

func noJobs(env *Env, dir string) error {
	if isFile(filepath.Join(dir, scan.ConfigFile)) {
		return withHint(usageErrorf("%q is a job, not a directory of jobs", dir), "proctor job show %s", dir)
	}
	_, _ = fmt.Fprintf(env.Stdout, "no jobs in %s\n", clean(dir))
	return nil
}

func headlineText(j report.ListedJob) string {
	switch {
	case j.Error != "":
		return j.Error
	case len(j.Headlines) == 0:
		return "-"
	}
	first := fmt.Sprintf("%s (%d with a reward)", j.Headlines[0].Text, j.Headlines[0].NScored)
	if more := len(j.Headlines) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", first, more)
	}
	return first
}
