package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	shipped "github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/cube/cubes"
	"github.com/proctor-run/proctor/cubecli/sandboxes"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/outcome"
)

// flagWords are what flags of these names take, in every command that has
// them. They are made when they are asked for, as most commands never are.
var flagWords = map[string]func() []string{
	"agent":         func() []string { return shipped.All().Names() },
	"env":           func() []string { return append([]string{sandboxes.Auto}, backends().Names()...) },
	"runtime":       these("gvisor", "native", "runc", "crun"),
	"cpus":          these("auto", "limit", "ignore"),
	"memory":        these("auto", "limit", "ignore"),
	"n-concurrent":  these("auto"),
	"metric":        these("mean", "sum", "max", "min"),
	"model-gateway": jobcli.GatewayModes,
	"aggregate":     these(string(outcome.MeanOfAttempts), string(outcome.BestOfK)),
}

func these(words ...string) func() []string { return func() []string { return words } }

// keepWords are for the flag that chooses a policy; another command has a switch of that
// name.
var keepWords = []string{string(outcome.KeepAll), string(outcome.KeepBest), string(outcome.DropLowest), string(outcome.KeepAboveBound)}

// addCompletions gives every command and flag that has no completion yet the
// one that its usage text tells: directories where a directory is meant, and
// no files where none is.
func addCompletions(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if _, has := cmd.GetFlagCompletionFunc(f.Name); has || f.Annotations[cobra.BashCompSubdirsInDir] != nil {
			return
		}
		value, _ := pflag.UnquoteUsage(f)
		switch words := flagWords[f.Name]; {
		case value == "directory":
			if f.Annotations == nil {
				f.Annotations = map[string][]string{}
			}
			f.Annotations[cobra.BashCompSubdirsInDir] = []string{}
		case f.Name == "keep" && f.Value.Type() == "string":
			register(cmd, f.Name, completeWords(keepWords...))
		case words != nil && f.Value.Type() != "int":
			register(cmd, f.Name, completeOneOf(words))
		}
	})
	for _, sub := range cmd.Commands() {
		addCompletions(sub)
	}
	if !cmd.HasSubCommands() && cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 {
		cmd.ValidArgsFunction = completionOf(cmd.Use)
	}
}

// completionOf reads from a usage line what the arguments are.
func completionOf(use string) cobra.CompletionFunc {
	_, args, _ := strings.Cut(use, " ")
	one := cobra.CompletionFunc(cobra.NoFileCompletions)
	switch {
	case strings.Contains(args, "CUBE"):
		one = completeCube
	case strings.Contains(args, "DIR"), strings.Contains(args, "PATH"), strings.Contains(args, "DATASET"), args == "A B":
		one = completeDirs
	}
	most := strings.Count(args, " ") + 1
	if strings.Contains(args, "...") {
		return one
	}
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return one(cmd, args, prefix)
	}
}

// isCompletion reports whether the arguments are those of a shell's completion
// script.
func isCompletion(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// plainUsage removes the backquotes from the descriptions of all flags. In
// help they mark the name of a flag's value; completion shows them as they are.
func plainUsage(cmd *cobra.Command) {
	plain := func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") }
	cmd.Flags().VisitAll(plain)
	cmd.PersistentFlags().VisitAll(plain)
	for _, sub := range cmd.Commands() {
		plainUsage(sub)
	}
}

// completeWords completes one of some words.
func completeWords(words ...string) cobra.CompletionFunc { return completeOneOf(these(words...)) }

func completeOneOf(words func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return withPrefix(words(), prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

func withPrefix(words []string, prefix string) []string {
	var out []string
	for _, w := range words {
		if strings.HasPrefix(w, prefix) {
			out = append(out, w)
		}
	}
	return out
}

// completeDirs leaves completion to the shell, directories only.
func completeDirs(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// completeCube completes the name of a shipped cube; where none fits, a
// directory of tasks may be meant.
func completeCube(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, c := range cubes.All() {
		names = append(names, c.Name)
	}
	if found := withPrefix(names, prefix); len(found) > 0 {
		return found, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// register sets the completion of a flag of the command.
func register(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the flag is not defined, or has one already
	}
}
