package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/cubecli/sandboxes"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
)

// diagnosis is one thing that works here or does not.
type diagnosis struct {
	Kind      string `json:"kind"` // "environment" or "runtime"
	Name      string `json:"name"`
	Available bool   `json:"available"`
	Detail    string `json:"detail,omitempty"` // why not, or where it is
	Fix       string `json:"fix,omitempty"`
}

func newDoctor(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Report which environments and runtimes work on this machine",
		Long: `doctor tries every environment (-e) and every runtime (--runtime) and says why
one does not work and what to do about it. Its exit code is 0 when at least one
environment works, and 1 otherwise.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd.Context(), env)
			defer stop()
			found := diagnose(ctx, env)
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
				if d.Kind == "environment" && d.Available {
					return nil
				}
			}
			return errQuiet(exitFailed)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	return cmd
}

func diagnose(ctx context.Context, env *Env) []diagnosis {
	var all []diagnosis
	for _, name := range backends().Names() {
		all = append(all, diagnoseEnvironment(ctx, env, name))
	}
	runtimes, err := sandboxes.Runtimes(ctx, backendOptions{}.in(env))
	if err != nil {
		return append(all, diagnosis{Kind: "runtime", Name: "all", Detail: err.Error()})
	}
	for _, r := range runtimes {
		d := diagnosis{Kind: "runtime", Name: r.Name, Available: r.Available, Detail: r.Reason, Fix: r.Fix}
		if r.Available {
			d.Detail = r.Path
		}
		all = append(all, d)
	}
	return append(all, diagnoseNetwork())
}

// diagnoseNetwork says whether public sandboxes of the runtimes are apart from this
// machine's network.
func diagnoseNetwork() diagnosis {
	d := diagnosis{Kind: "network", Name: "own", Available: true}
	if fix, err := sandboxes.OwnNetwork(); err != nil {
		d.Available, d.Fix = false, fix
		d.Detail = fmt.Sprintf("public sandboxes of -e sandbox and -e host share this machine's network: %v", err)
	}
	return d
}

func diagnoseEnvironment(ctx context.Context, env *Env, name string) diagnosis {
	d := diagnosis{Kind: "environment", Name: name}
	b, closeBackend, err := sandboxes.New(ctx, name, backendOptions{}.in(env))
	if err != nil {
		d.Detail = err.Error()
		return d
	}
	defer func() { _ = closeBackend() }()
	if err := b.Check(ctx); err != nil {
		d.Detail = err.Error()
		return d
	}
	d.Available = true
	if engine, ok := b.(supervised); ok {
		d.Detail, d.Fix = diagnoseSupervision(ctx, engine)
	}
	return d
}

// supervised is a backend that may have to do without the guest.
type supervised interface {
	Supervision(ctx context.Context, labels sandbox.Labels) (kind string, why error)
}

// diagnoseSupervision says what the engine's containers promise of processes
// that are ended.
func diagnoseSupervision(ctx context.Context, engine supervised) (detail, fix string) {
	self, err := procid.Self()
	if err != nil {
		return err.Error(), ""
	}
	kind, why := engine.Supervision(ctx, sandbox.Labels{Job: "doctor", Trial: "doctor", Owner: self})
	switch kind {
	case sandbox.SupervisionGuest:
		return "commands are supervised by the guest in each container", ""
	case sandbox.SupervisionEngine:
		return fmt.Sprintf("commands are supervised by the engine alone, so that ending one ends everything in its container, and there are no allow lists: %v", why),
			"put proctor-guest, or proctor-guest-linux-ARCH for the engine's processor, beside proctor"
	default:
		return fmt.Sprintf("what supervises commands cannot be told: %v", why), ""
	}
}

func printDiagnoses(w io.Writer, all []diagnosis) error {
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
	}
	return outputError(tw.Flush())
}
