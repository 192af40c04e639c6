package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/internal/flags"
	"github.com/proctor-run/proctor/internal/suggest"
)

// flagError makes what is wrong with a command's flags an error of usage, with
// advice.
func flagError(cmd *cobra.Command, err error) error {
	if cmd.HasSubCommands() && cmd.Flags().NArg() > 0 {
		return noUnknownCommand(cmd, cmd.Flags().Args()) // its flags cannot be known
	}
	return flags.Error(cmd, err)
}

// noUnknownCommand refuses a word that is not a command, with the nearest ones.
func noUnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(append(names, sub.Name()), sub.Aliases...)
		}
	}
	err := usageErrorf("unknown command %q for '%s'", args[0], cmd.CommandPath())
	if instead, ok := harborCommands[strings.TrimPrefix(cmd.CommandPath()+" ", "proctor ")+args[0]]; ok {
		return withHint(err, "%s", instead)
	}
	if hint := suggest.DidYouMean("", suggest.Nearest(args[0], names)); hint != "" {
		return withHint(err, "%s", hint)
	}
	return withHint(err, "'%s --help' lists the commands", cmd.CommandPath())
}

// unknownInHelp refuses a word that is not a command where help is asked for, which
// would be that of the command above it.
func unknownInHelp(root *cobra.Command, args []string) error {
	words := args
	if end := slices.Index(args, "--"); end >= 0 {
		words = args[:end]
	}
	if !slices.Contains(words, "--help") && !slices.Contains(words, "-h") {
		return nil
	}
	found, rest, err := root.Find(words)
	if err != nil || !found.HasSubCommands() {
		return nil //nolint:nilerr // the execution finds it out
	}
	rest = slices.DeleteFunc(slices.Clone(rest), func(s string) bool { return strings.HasPrefix(s, "-") })
	return noUnknownCommand(found, rest)
}
