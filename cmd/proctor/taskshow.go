package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/report"
)

func newTaskShow(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show DIR",
		Short: "Show a task's resolved settings",
		Long: `show reads a task and shows what follows from its files: its name, its hashes,
what its environment is made of, and for each step who works and verifies, how
long, and with which network. It runs nothing.

The checksum is that of Harbor's trial results, the content hash that of
lock.json and of packages.`,
		Example: `  proctor task show my-task
  proctor task show my-task --json`,
		Args: oneDirectory("task"),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := report.ReadTask(args[0])
			if _, ok := errors.AsType[*report.InvalidError](err); ok {
				return withHint(usageErrorf("%w", err), "'proctor task validate %s' names everything that is wrong", args[0])
			}
			if err != nil {
				return usageErrorf("%w", err)
			}
			if asJSON {
				return encodeJSON(env.Stdout, s)
			}
			printTask(env.Stdout, s)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, nothing else")
	return cmd
}

func printTask(w io.Writer, s *report.Task) {
	_, _ = lipgloss.Fprintln(w, console.Bold(clean(s.Name)))
	_, _ = fmt.Fprintf(w, "checksum      %s\n", s.Checksum)
	_, _ = fmt.Fprintf(w, "content hash  %s\n", s.ContentHash)
	_, _ = fmt.Fprintf(w, "environment   %s, made within %s\n\n", clean(s.Environment), seconds(s.BuildSec))
	t := console.NewTable("Phase", "User", "Time limit", "Network", "Notes")
	for _, stage := range s.Stages {
		name := func(phase string) string {
			if stage.Step != "" {
				phase += " of " + clean(stage.Step)
			}
			return phase
		}
		notes := fmt.Sprintf("instruction of %s", count(stage.Instruction, "byte"))
		if !stage.Solution {
			notes += ", no solution"
		}
		t.Row(append([]string{name("agent")}, append(phaseCells(stage.Agent), notes)...)...)
		notes = "shares the agent's environment"
		if stage.Separate {
			notes = "an environment of its own"
		}
		t.Row(append([]string{name("verifier")}, append(phaseCells(stage.Verifier), notes)...)...)
	}
	_, _ = lipgloss.Fprintln(w, t.Render())
}

func phaseCells(p report.StagePhase) []string {
	user, limit, network := "the image's", "none", p.Network.Mode
	if p.User != nil {
		user = clean(*p.User)
	}
	if p.TimeoutSec != nil {
		limit = seconds(*p.TimeoutSec)
	}
	if len(p.Network.Hosts) > 0 {
		network += ": " + clean(strings.Join(p.Network.Hosts, ", "))
	}
	return []string{user, limit, network}
}
