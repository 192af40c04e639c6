package main

import (
	"github.com/spf13/cobra"
)

func newTask(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "task",
		Aliases: []string{"tasks"},
		Short:   "Begin and validate tasks",
		Long: `task helps to write task directories.

  1. 'proctor task init NAME' makes one that already works.
  2. Write instruction.md, environment/Dockerfile, tests/test.sh, solution/solve.sh.
  3. 'proctor task validate NAME' names everything that is wrong with its files.
  4. 'proctor run -p NAME -a oracle' must give 1, '-a nop' must give 0.`,
		Example: `  proctor task init count-words -p tasks
  proctor task validate tasks`,
		Args: noUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTaskInit(env), newTaskValidate(env), newTaskMigrate(env))
	return cmd
}
