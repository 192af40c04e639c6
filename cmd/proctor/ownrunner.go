package main

import "github.com/spf13/cobra"

func newOwnrunner(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ownrunner",
		Short: "Run and judge evaluations by the contract of an independent runner",
		Long: `ownrunner has both sides of the contract between a benchmark runner and who relies
on its result line: run evaluates an agent at tasks, judge decides what an attempt
comes to, manifest pins what the tasks hold.`,
		Args: noUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newOwnrunnerRun(env), newOwnrunnerJudge(env), newOwnrunnerManifest(env))
	return cmd
}
