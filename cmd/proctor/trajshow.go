package main

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/jobdir/traces"
	"github.com/proctor-run/proctor/value"
)

func newTrajShow(env *Env) *cobra.Command {
	var asJSON bool
	var steps string
	lines := 20
	cmd := &cobra.Command{
		Use:   "show PATH",
		Short: "Show a trajectory step by step, with tool calls, observations, tokens and cost",
		Long: `show prints a trajectory file, or that of a trial's directory with the files that
continue it: each step with its message, its reasoning, its tool calls and what
they gave. Long texts are cut to --lines lines each.`,
		Example: `  proctor traj show jobs/2026-06-09__10-00-00/hello-world__AbCdEfG
  proctor traj show --steps 3-5 --lines 0 agent/trajectory.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return withHint(usageErrorf("accepts one trajectory, got %d", len(args)), "'%s --help' shows an example", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			chosen, err := parseSteps(steps)
			if err != nil {
				return err
			}
			shown, err := trajectoriesToShow(args[0], chosen)
			if err != nil {
				return err
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
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per file, nothing else")
	return cmd
}

// stepRange are the numbers of the first and the last step.
type stepRange struct{ from, to int }

// anyStep is the end of a range without one.
const anyStep = int(^uint(0) >> 1)

func parseSteps(text string) (stepRange, error) {
	all := stepRange{1, anyStep}
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
	}{{from, &r.from}, {to, &r.to}} {
		n, err := strconv.Atoi(part.text)
		switch {
		case part.text == "" && isRange:
		case err != nil || n < 1:
			return all, usageErrorf("--steps %q: a number, FROM-TO, FROM- or -TO is needed", text)
		default:
			*part.to = n
		}
	}
	if r.from > r.to {
		return all, usageErrorf("--steps %q: there is no step in it", text)
	}
	return r, nil
}

func (r stepRange) has(id int) bool { return id >= r.from && id <= r.to }

// shownTrajectory is what traj show --json prints per file.
type shownTrajectory struct {
	File   string     `json:"file"`
	Totals trajTotals `json:"totals"`
	// Trajectory is the document with the coercions of the format, and with the
	// chosen steps alone.
	Trajectory json.RawMessage `json:"trajectory"`
	parsed     *atif.Trajectory
	steps      []atif.Step
}

// trajTotals are those that the trajectory states, else the sums over its steps;
// null is unknown.
type trajTotals struct {
	Steps            int         `json:"steps"`
	PromptTokens     *value.Int  `json:"prompt_tokens"`
	CachedTokens     *value.Int  `json:"cached_tokens"`
	CompletionTokens *value.Int  `json:"completion_tokens"`
	CostUSD          *jsonNumber `json:"cost_usd"`
}

func trajectoriesToShow(path string, chosen stepRange) ([]*shownTrajectory, error) {
	files, err := filesToShow(path)
	if err != nil {
		return nil, err
	}
	var shown []*shownTrajectory
	for _, f := range files {
		v, err := f.Read()
		var t *atif.Trajectory
		if err == nil {
			t, err = atif.Decode(v)
		}
		if err != nil {
			return nil, withHint(usageErrorf("%s: %w", f.Path(), err), "'proctor traj validate %s' says everything that is wrong", f.Path())
		}
		s := &shownTrajectory{File: f.Path(), parsed: t, Totals: totalsOf(t)}
		for _, step := range t.Steps {
			if chosen.has(step.ID) {
				s.steps = append(s.steps, step)
			}
		}
		document := t.Object()
		if list, ok := member(document, "steps").(value.List); ok {
			document.Set("steps", list[min(chosen.from-1, len(list)):min(chosen.to, len(list))])
		}
		s.Trajectory = value.AppendPydantic(nil, document, 0)
		shown = append(shown, s)
	}
	return shown, nil
}

func member(o *value.Object, key string) value.Value {
	v, _ := o.Get(key)
	return v
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

func totalsOf(t *atif.Trajectory) trajTotals {
	var sum trajTotals
	for i := range t.Steps {
		if m := t.Steps[i].Metrics; m != nil {
			sum.PromptTokens = addInt(sum.PromptTokens, m.PromptTokens)
			sum.CachedTokens = addInt(sum.CachedTokens, m.CachedTokens)
			sum.CompletionTokens = addInt(sum.CompletionTokens, m.CompletionTokens)
			if m.CostUSD != nil {
				if sum.CostUSD == nil {
					sum.CostUSD = new(jsonNumber)
				}
				*sum.CostUSD += jsonNumber(*m.CostUSD)
			}
		}
	}
	sum.Steps = len(t.Steps)
	f := t.FinalMetrics
	if f == nil {
		return sum
	}
	if f.PromptTokens != nil {
		sum.PromptTokens = f.PromptTokens
	}
	if f.CachedTokens != nil {
		sum.CachedTokens = f.CachedTokens
	}
	if f.CompletionTokens != nil {
		sum.CompletionTokens = f.CompletionTokens
	}
	if f.CostUSD != nil {
		sum.CostUSD = new(jsonNumber(*f.CostUSD))
	}
	return sum
}

// addInt adds what is known.
func addInt(sum, n *value.Int) *value.Int {
	switch {
	case n == nil:
		return sum
	case sum == nil:
		return n
	}
	return new(sum.Add(*n))
}
