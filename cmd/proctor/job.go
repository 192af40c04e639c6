package main

import (
	"github.com/spf13/cobra"
)

func newJob(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "job",
		Aliases: []string{"jobs"},
		Short:   "Start, resume, list and show jobs",
		Long: `job works on job directories, those that proctor wrote and those that Harbor
wrote.

To run a new job, use 'proctor run'; to aggregate one again, 'proctor score'; to
compare two, 'proctor compare'.`,
		Example: `  proctor job list
  proctor job show jobs/2026-06-09__10-00-00
  proctor job resume jobs/2026-06-09__10-00-00`,
		Args: noUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newJobStart(env), newJobResume(env), newJobList(env), newJobShow(env), newJobExport(env), newJobSummarize(env))
	return cmd
}
