package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
)

// Run is the whole program: it runs one command and returns the exit code.
func Run(ctx context.Context, env Env) int {
	root := newRoot(&env)
	addCompletions(root)
	if isCompletion(env.Args[1:]) {
		plainUsage(root)
	}
	root.SetArgs(env.Args[1:])
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	err := root.ExecuteContext(ctx)
	if err != nil {
		report(&env, err)
	}
	return exitCode(err)
}

func newRoot(env *Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "proctor",
		Short: "Run, verify and score AI agents on tasks in isolated sandboxes",
		Long: `proctor hands tasks to AI agents in isolated sandboxes, verifies what they did
and scores it. It reads and writes Harbor's task and job directories and needs
no container daemon.

Start with the shipped examples and their own solutions:

  proctor run -p examples/tasks -a oracle -e host

Then run an agent of yours, given as a shell command:

  proctor run -p examples/tasks -a command --ak run='my-agent "$PROCTOR_INSTRUCTION"'`,
		SilenceErrors: true,
		SilenceUsage:  true,
		// How many letters a command may be off to be suggested.
		SuggestionsMinimumDistance: 2,

		Args: noUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return withHint(usageErrorf("%w", err), "'%s --help' lists the flags", cmd.CommandPath())
	})
	root.AddCommand(
		newRun(env),
		newDoctor(env),
		newGC(env),
		newScore(env), newOutcome(env), newCompare(env),
		newJob(env), newTrial(env), newTask(env), newDataset(env),
		newCube(env),
		newVersion(env),
	)
	root.InitDefaultCompletionCmd()
	return root
}

// noUnknownCommand refuses a word that is no command, with the nearest ones.
func noUnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := usageErrorf("unknown command %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return withHint(err, "did you mean %s?", strings.Join(near, " or "))
	}
	return withHint(err, "'proctor --help' lists the commands")
}

// noArguments refuses words behind a command that takes none.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return withHint(usageErrorf("%s takes no arguments, have %q", cmd.CommandPath(), args[0]), "'%s --help' lists the flags", cmd.CommandPath())
}
