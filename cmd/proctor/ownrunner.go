package main

import "github.com/spf13/cobra"

func newOwnrunner(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ownrunner",
		Short: "Judge evaluations by the contract of an independent runner",
		Long: `ownrunner has the consumer's side of the contract between a benchmark runner and
who relies on its result line: what an attempt at a task comes to, and which
tasks it may be made at.`,
		Args: noUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newOwnrunnerJudge(env), newOwnrunnerManifest(env))
	return cmd
}
