package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/internal/exitcode"
)

// Run is the whole program: it runs one command and returns the exit code.
func Run(ctx context.Context, env Env) int {
	out := console.NewOutput(env.Stdout)
	env.Stdout = out
	root := newRoot(&env) //nolint:contextcheck // commands take the context of ExecuteContext
	addCompletions(root)
	if isCompletion(env.Args[1:]) {
		plainUsage(root)
	}
	root.SetArgs(env.Args[1:])
	root.SetIn(env.Stdin)
	root.SetErr(env.Stderr)
	err := unknownInHelp(root, env.Args[1:])
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	err = exitcode.WithOutput(err, out.Err())
	if err != nil {
		printError(&env, err)
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
		Args:          noUnknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(env.Stdout) // completion asks for it when it is made
	root.Version = versionText()
	root.SetVersionTemplate("{{.Version}}")
	root.SetFlagErrorFunc(flagError)
	addGroup(root, "Run", newRun(env), newJob(env), newTrial(env), newMCP(env))
	addGroup(root, "Results", newView(env), newScore(env), newVerify(env), newOutcome(env), newOwnrunner(env), newCompare(env), newTraj(env))
	addGroup(root, "Tasks and cubes", newTask(env), newDataset(env), newCube(env))
	addGroup(root, "Machine", newDoctor(env), newAgent(env), newImage(env), newBench(env), newGC(env))
	root.AddCommand(newVersion(env))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Run, cmd.RunE = nil, helpFor
		case "completion":
			cmd.Args, cmd.RunE = noUnknownCommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	return root
}

// addGroup adds commands that help lists together.
func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title + ":"})
	for _, cmd := range commands {
		cmd.GroupID = title
	}
	root.AddCommand(commands...)
}

// helpFor prints the help of the command that the words name.
func helpFor(cmd *cobra.Command, words []string) error {
	found, rest, err := cmd.Root().Find(words)
	if err != nil || len(rest) > 0 {
		return noUnknownCommand(found, rest)
	}
	found.InitDefaultHelpFlag()
	return outputError(found.Help())
}

// noArguments refuses words behind a command that takes none.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return withHint(usageErrorf("'%s' takes no arguments, but %q is given", cmd.CommandPath(), args[0]), "'%s --help' lists the flags", cmd.CommandPath())
}
