package main

import (
	"github.com/spf13/cobra"
)

// newJobStart is run under the name that Harbor has for it, too.
func newJobStart(env *Env) *cobra.Command {
	cmd := newRun(env)
	cmd.Use = "start"
	cmd.Short = "Run agents on tasks, verify and score them: the same as 'proctor run'"
	cmd.Example = `  proctor job start -p examples/tasks -a oracle -e host
  proctor job start -c job.yaml --json`
	return cmd
}

// newRemoved answers a command that Harbor once had.
func newRemoved(name, instead string) *cobra.Command {
	return &cobra.Command{
		Use:                name,
		Short:              "Removed; see '" + instead + "'",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withHint(usageErrorf("'%s' is not a command any more; Harbor removed it, too", cmd.CommandPath()), "use '%s' instead", instead)
		},
	}
}
