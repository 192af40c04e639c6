package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/jobdir/traces"
	"github.com/proctor-run/proctor/report"
)

func newTrajValidate(env *Env) *cobra.Command {
	var asJSON, noImages, asHarborDoes bool
	cmd := &cobra.Command{
		Use:   "validate PATH...",
		Short: "Report everything that is wrong with trajectories",
		Long: `validate checks trajectory files, or all files trajectory*.json of a trial, a job or
another directory, against the rules of ATIF 1.0 to 1.7, in the words of Harbor's
validator. Images that a trajectory names have to exist beside it.

The exit code is 2 when a trajectory is not valid.`,
		Example: `  proctor traj validate agent/trajectory.json
  proctor traj validate --json jobs/2026-06-09__10-00-00`,
		Args: somePaths("trajectory"),
		RunE: func(_ *cobra.Command, args []string) error {
			return asHarbor(validateTrajectories(env, args, !noImages, asJSON), asHarborDoes)
		},
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per file, nothing else")
	cmd.Flags().BoolVar(&noImages, "no-validate-images", false, "do not look for the images")
	cmd.Flags().BoolVar(&asHarborDoes, "harbor-exit-codes", false, "exit with 1 when a trajectory is not valid, as Harbor's validator does")
	return cmd
}

// somePaths asks for at least one path.
func somePaths(kind string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return withHint(usageErrorf("no %s is given", kind), "'%s --help' shows an example", cmd.CommandPath())
		}
		return nil
	}
}

func validateTrajectories(env *Env, paths []string, images, asJSON bool) error {
	files, err := trajectoriesAt(paths)
	if err != nil {
		return err
	}
	invalid := 0
	for _, f := range files {
		v, err := report.ValidateTrajectory(f, images)
		if err != nil {
			return withHint(usageErrorf("%w", err), "name a trajectory, or a directory that holds some")
		}
		if !v.Valid {
			invalid++
		}
		if !asJSON {
			printTrajValidation(env, v)
			continue
		}
		if err := encodeJSON(env.Stdout, v); err != nil {
			return err
		}
	}
	if invalid == 0 {
		return nil
	}
	if len(files) == 1 {
		return errQuiet(exitUsage) // all has been said
	}
	return usageErrorf("%d of %s not valid", invalid, countIs(len(files), "trajectory", "trajectories"))
}

// countIs is a number of things with the verb "to be" behind it.
func countIs(n int, one, many string) string {
	if n == 1 {
		return "1 " + one + " is"
	}
	return fmt.Sprintf("%d %s are", n, many)
}

// trajectoriesAt finds the files that the paths name.
func trajectoriesAt(paths []string) ([]traces.File, error) {
	var files []traces.File
	for _, p := range paths {
		found, err := traces.Files(p)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, usageErrorf("File not found: %s", p)
		case err != nil:
			return nil, usageErrorf("%w", err)
		case len(found) == 0:
			return nil, withHint(usageErrorf("there is no trajectory in %q", p), "agents that leave one write agent/trajectory.json in their trial's directory")
		}
		files = append(files, found...)
	}
	return files, nil
}

func printTrajValidation(env *Env, v *report.TrajectoryValidation) {
	if v.Valid {
		_, _ = fmt.Fprintf(env.Stdout, "✓ Trajectory is valid: %s\n", clean(v.File))
		return
	}
	_, _ = fmt.Fprintf(env.Stderr, "✗ Trajectory validation failed: %s\n\nFound %d error(s):\n", clean(v.File), len(v.Problems))
	for _, p := range v.Problems {
		_, _ = fmt.Fprintf(env.Stderr, "  - %s\n", clean(atif.Problem(p).String()))
	}
}
