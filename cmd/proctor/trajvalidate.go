package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/jobdir/traces"
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

// trajReport is what traj validate --json prints per file.
type trajReport struct {
	File     string        `json:"file"`
	Valid    bool          `json:"valid"`
	Problems []trajProblem `json:"problems"`
}

type trajProblem struct {
	// Location is "trajectory.steps.0.message"; empty when the file is no document
	// that has places.
	Location string `json:"location,omitempty"`
	Message  string `json:"message"`
}

func validateTrajectories(env *Env, paths []string, images, asJSON bool) error {
	files, err := trajectoriesAt(paths)
	if err != nil {
		return err
	}
	invalid := 0
	for _, f := range files {
		problems, err := f.Validate(images)
		if err != nil {
			return withHint(usageErrorf("%w", err), "name a trajectory, or a directory that holds some")
		}
		if len(problems) > 0 {
			invalid++
		}
		if err := printTrajReport(env, f.Path(), problems, asJSON); err != nil {
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

func printTrajReport(env *Env, file string, problems []atif.Problem, asJSON bool) error {
	if asJSON {
		r := trajReport{File: file, Valid: len(problems) == 0, Problems: []trajProblem{}}
		for _, p := range problems {
			r.Problems = append(r.Problems, trajProblem{Location: p.Location, Message: p.Message})
		}
		return encodeJSON(env.Stdout, r)
	}
	if len(problems) == 0 {
		_, _ = fmt.Fprintf(env.Stdout, "✓ Trajectory is valid: %s\n", clean(file))
		return nil
	}
	_, _ = fmt.Fprintf(env.Stderr, "✗ Trajectory validation failed: %s\n\nFound %d error(s):\n", clean(file), len(problems))
	for _, p := range problems {
		_, _ = fmt.Fprintf(env.Stderr, "  - %s\n", clean(p.String()))
	}
	return nil
}
