package main

import (
	"github.com/spf13/cobra"
)

func newTrial(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "trial",
		Aliases: []string{"trials"},
		Short:   "Run, follow and show single trials",
		Long: `trial works on trial directories, those that proctor wrote and those that Harbor
wrote.`,
		Example: `  proctor trial start -p examples/tasks/hello-world -a oracle -e host
  proctor trial attach jobs/2026-06-09__10-00-00
  proctor trial show jobs/2026-06-09__10-00-00/hello-world__AbCdEfG`,
		Args: noUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTrialStart(env), newTrialShow(env), newTrialAttach(env), newRemoved("summarize", "proctor trial show TRIALDIR"))
	return cmd
}
