package main

import (
	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/internal/jobcli"
)

func newJobExport(env *Env) *cobra.Command {
	f := &jobcli.JUnit{}
	cmd := &cobra.Command{
		Use:   "export --junit FILE JOBDIR",
		Short: "Export results (JUnit XML)",
		Long: `export writes the trials of a job as JUnit XML, which continuous integration
systems show: a test suite for each agent, model and dataset, a test case for
each trial.

A trial passes when its reward reaches --pass-at. One below is a failure; an
exception without a reward is an error; a trial that has no result yet, or was
not verified, is skipped. FILE "-" is standard output.

'proctor run --junit FILE' does the same at the end of a run.`,
		Example: `  proctor job export --junit report.xml jobs/2026-06-09__10-00-00
  proctor job export --junit - --pass-at 0.5 jobs/2026-06-09__10-00-00`,
		Args: oneDirectory("job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd.Context(), env)
			defer stop()
			if f.File == "" {
				return withHint(usageErrorf("there is nothing to write"), "--junit FILE says where")
			}
			return f.Export(ctx, env.Stdout, args[0])
		},
		ValidArgsFunction: completionOf("export JOBDIR"),
	}
	f.Define(cmd.Flags())
	return cmd
}
