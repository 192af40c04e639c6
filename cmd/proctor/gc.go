package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/trial"
)

func newGC(env *Env) *cobra.Command {
	var asJSON, quiet bool
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Remove what killed runs left behind",
		Long: `gc removes the sandboxes, mounts, networks and directories of runs whose
process is gone. What belongs to a running proctor is never touched.

Every run does the same for the backend it uses, before it starts.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd.Context(), env)
			defer stop()
			removed, err := collectAll(ctx, env)
			if asJSON {
				if removed == nil {
					removed = []string{}
				}
				return errors.Join(err, json.NewEncoder(env.Stdout).Encode(map[string][]string{"removed": removed}))
			}
			for _, line := range removed {
				fmt.Fprintln(env.Stdout, line)
			}
			if !quiet && len(removed) == 0 && err == nil {
				fmt.Fprintln(env.Stdout, "nothing to remove")
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print only what was removed")
	return cmd
}

// collectAll cleans up behind every backend that works here. A backend that
// does not has left nothing that could be reached.
func collectAll(ctx context.Context, env *Env) ([]string, error) {
	var all []string
	var errs []error
	// sandbox and host share their state directory.
	for _, name := range []string{"docker", trial.BackendHost} {
		b, closeBackend, err := openBackend(ctx, env, name, backendOptions{cleaning: true})
		if errors.Is(err, sandbox.ErrUnavailable) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		removed, err := collect(ctx, b)
		all = append(all, removed...)
		if !errors.Is(err, sandbox.ErrUnavailable) {
			errs = append(errs, err)
		}
		errs = append(errs, closeBackend())
	}
	return all, errors.Join(errs...)
}

// collect removes what dead owners left in one backend.
func collect(ctx context.Context, b sandbox.Backend) ([]string, error) {
	collector, ok := b.(sandbox.Collector)
	if !ok {
		return nil, nil
	}
	removed, err := collector.Collect(ctx, sandbox.Owner.Alive)
	if err != nil {
		return removed, fmt.Errorf("cleaning up behind killed runs (%s): %w", b.Name(), err)
	}
	return removed, nil
}
