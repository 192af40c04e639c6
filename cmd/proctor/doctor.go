package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/cubecli/sandboxes"
	"github.com/proctor-run/proctor/internal/jobcli"
)

func newDoctor(env *Env) *cobra.Command {
	var asJSON, allowRemote bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Report which environments and runtimes work on this machine",
		Long: `doctor tries every environment (-e) and every runtime (--runtime) and says why
one does not work and what to do about it, and what it measured that commands can
do in its sandboxes, as they are and with --hardened. Its exit code is 0 when at least one
environment works, and 1 otherwise.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd.Context(), env)
			defer stop()
			found := sandboxes.Diagnose(ctx, backendOptions{Options: sandboxes.Options{AllowRemoteEngine: allowRemote}}.in(env))
			if ctx.Err() != nil {
				return errInterrupted
			}
			if asJSON {
				if err := json.NewEncoder(env.Stdout).Encode(found); err != nil {
					return outputError(err)
				}
			} else if err := printDiagnoses(env.Stdout, found); err != nil {
				return err
			}
			for _, d := range found {
				if d.Kind == sandboxes.KindEnvironment && d.Available {
					return nil
				}
			}
			return errQuiet(exitFailed)
		},
	}
	jobcli.DefineRemoteEngine(cmd.Flags(), &allowRemote)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	return cmd
}

// printPosture says what commands can do in sandboxes, as it was measured.
func printPosture(w io.Writer, d *sandboxes.Diagnosis) {
	switch {
	case d.Unmeasured != "":
		_, _ = fmt.Fprintf(w, "\t\t\tcommands: not measured: %s\n", clean(d.Unmeasured))
	case d.Posture != nil:
		_, _ = fmt.Fprintf(w, "\t\t\tcommands: %s\n", d.Posture.Default)
		hardened := "refused"
		if d.Posture.Hardened != nil {
			hardened = d.Posture.Hardened.String()
		}
		_, _ = fmt.Fprintf(w, "\t\t\twith --hardened: %s\n", hardened)
	}
}

func printDiagnoses(w io.Writer, all []sandboxes.Diagnosis) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, d := range all {
		state := "works"
		if !d.Available {
			state = "does not work"
		}
		_, _ = fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", d.Kind, d.Name, state, clean(d.Detail))
		if d.Fix != "" {
			_, _ = fmt.Fprintf(tw, "\t\t\t→ %s\n", clean(d.Fix))
		}
		printPosture(tw, &d)
	}
	return outputError(tw.Flush())
}
