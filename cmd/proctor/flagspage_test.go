package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/proctor-run/proctor/internal/flags"
)

// flagsPageFile lists the flags of all commands.
const flagsPageFile = "../../docs/flags.md"

// TestFlagsPage: docs/flags.md is what the commands say of their flags. With
// PROCTOR_UPDATE=1 it is written.
func TestFlagsPage(t *testing.T) {
	t.Parallel()
	root := newRoot(&Env{})
	addCompletions(root)
	want := flagsPage(root)
	if os.Getenv("PROCTOR_UPDATE") != "" {
		if err := os.WriteFile(flagsPageFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(flagsPageFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/flags.md differs from the commands (-commands +page); write it with 'PROCTOR_UPDATE=1 go test ./cmd/proctor -run TestFlagsPage':\n%s", diff)
	}
}

func flagsPage(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# Flags\n\nThe flags of each command, as its help has them. [Commands](commands.md) says what the commands do.\n")
	for _, cmd := range leaves(root) {
		cmd.InitDefaultHelpFlag()
		topics := flags.Topics(cmd.LocalFlags())
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n", cmd.CommandPath(), strings.TrimSuffix(cmd.Short, "."))
		for _, t := range topics {
			if table := flagTable(t.Flags); table != "" {
				title := t.Title + " flags"
				if len(topics) == 1 {
					title = "flag"
				}
				fmt.Fprintf(&b, "\n| %s | |\n|---|---|\n%s", title, table)
			}
		}
	}
	return b.String()
}

// flagTable has a row for each flag but help.
func flagTable(fs *pflag.FlagSet) string {
	var b strings.Builder
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if value != "" {
			name += " " + value
		}
		if !plainDefault(f) {
			usage += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, strings.NewReplacer("|", `\|`, "<", `\<`).Replace(usage))
	})
	return b.String()
}

// plainDefault reports whether nobody needs to know what a flag is without being
// given.
func plainDefault(f *pflag.Flag) bool {
	switch f.DefValue {
	case "", "false", "[]", "0", "0s":
		return true
	}
	return false
}
