package main

import (
	"github.com/spf13/cobra"
)

func newTraj(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "traj",
		Aliases: []string{"traces", "trajectory"},
		Short:   "Check, show and export trajectories: what agents did, step by step",
		Long: `traj works on trajectories in ATIF, the format in which Harbor's agents leave them
as agent/trajectory.json in a trial's directory.`,
		Example: `  proctor traj validate jobs/2026-06-09__10-00-00
  proctor traj show jobs/2026-06-09__10-00-00/hello-world__AbCdEfG
  proctor traj export -o rows.jsonl jobs/2026-06-09__10-00-00`,
		Args: noUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTrajValidate(env), newTrajShow(env), newTrajExport(env), newTrajConvert(env))
	return cmd
}
