package main

import (
	"github.com/spf13/cobra"
)

func newTask(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "task",
		Aliases: []string{"tasks"},
		Short:   "Create, validate, check and migrate tasks",
		Long: `task helps to write task directories.

  1. 'proctor task init NAME' makes one that already works.
  2. Write instruction.md, environment/Dockerfile, tests/test.sh, solution/solve.sh.
  3. 'proctor task validate NAME' reports every problem in its files.
  4. 'proctor task check NAME' runs it: does its solution get 1 and no work 0, and
     can an agent cheat?

'proctor task migrate' turns Terminal-Bench tasks into such directories.`,
		Example: `  proctor task init count-words -p tasks
  proctor task validate tasks
  proctor task check tasks -e sandbox`,
		Args: noUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTaskInit(env), newTaskShow(env), newTaskValidate(env), newTaskCheck(env), newTaskMigrate(env), newRemoved("debug", "proctor task check DIR"))
	return cmd
}
