package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/jobdir/traces"
	"github.com/proctor-run/proctor/report"
)

func newTrajShow(env *Env) *cobra.Command {
	var asJSON, walk bool
	var steps string
	lines := 20
	cmd := &cobra.Command{
		Use:   "show PATH",
		Short: "Show a trajectory step by step, with tool calls, observations, tokens and cost",
		Long: `show prints a trajectory file, or that of a trial's directory with the files that
continue it: each step with its message, its reasoning, its tool calls and what
they gave. Long texts are cut to --lines lines each.

--step shows one step at a time, whole: ← and → lead to the one before and behind,
↑, ↓ and the space bar through a long one, / searches, N finds the next, r, c and o
hide reasoning, calls and what they gave, q ends.`,
		Example: `  proctor traj show jobs/2026-06-09__10-00-00/hello-world__AbCdEfG
  proctor traj show --step jobs/2026-06-09__10-00-00/hello-world__AbCdEfG
  proctor traj show --steps 3-5 --lines 0 agent/trajectory.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return withHint(usageErrorf("accepts one trajectory, got %d", len(args)), "'%s --help' shows an example", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if walk && asJSON {
				return usageErrorf("--step is for a terminal and --json for programs: choose one")
			}
			chosen, err := parseSteps(steps)
			if err != nil {
				return err
			}
			shown, err := trajectoriesToShow(args[0], chosen)
			if err != nil {
				return err
			}
			if walk {
				ctx, stop := interruptible(cmd.Context(), env)
				defer stop()
				return walkTrajectory(ctx, env, shown)
			}
			for i, s := range shown {
				if asJSON {
					err = encodeJSON(env.Stdout, s)
				} else {
					printTrajectory(env.Stdout, s, lines, i > 0)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
	}
	cmd.Flags().StringVar(&steps, "steps", "", "show these steps alone: a `number`, or FROM-TO, FROM- or -TO")
	cmd.Flags().IntVar(&lines, "lines", lines, "cut texts to this `number` of lines each; 0 cuts nothing")
	cmd.Flags().BoolVar(&walk, "step", false, "show one step at a time, led by keys")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per file, nothing else")
	return cmd
}

func parseSteps(text string) (report.Steps, error) {
	all := report.AllSteps()
	if text == "" {
		return all, nil
	}
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	r := all
	for _, part := range []struct {
		text string
		to   *int
	}{{from, &r.First}, {to, &r.Last}} {
		n, err := strconv.Atoi(part.text)
		switch {
		case part.text == "" && isRange:
		case err != nil || n < 1:
			return all, usageErrorf("--steps %q: a number, FROM-TO, FROM- or -TO is needed", text)
		default:
			*part.to = n
		}
	}
	if r.First > r.Last {
		return all, usageErrorf("--steps %q: there is no step in it", text)
	}
	return r, nil
}

func trajectoriesToShow(path string, chosen report.Steps) ([]*report.Trajectory, error) {
	files, err := filesToShow(path)
	if err != nil {
		return nil, err
	}
	var shown []*report.Trajectory
	for _, f := range files {
		t, err := report.ReadTrajectory(f, chosen)
		if err != nil {
			return nil, withHint(usageErrorf("%w", err), "'proctor traj validate %s' says everything that is wrong", f.Path())
		}
		shown = append(shown, t)
	}
	return shown, nil
}

// filesToShow are the file of that name, or those of the trial.
func filesToShow(path string) ([]traces.File, error) {
	if !isDirectory(path) {
		return trajectoriesAt([]string{path})
	}
	files, err := traces.Parts(path)
	if err != nil {
		return nil, usageErrorf("%w", err)
	}
	if len(files) > 0 {
		return files, nil
	}
	all, err := trajectoriesAt([]string{path})
	if err != nil || len(all) == 1 {
		return all, err
	}
	return nil, withHint(usageErrorf("%q holds %d trajectories", path, len(all)), "name one of them, for example %s", all[0].Path())
}
