package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/report"
)

func newJobSummarize(env *Env) *cobra.Command {
	var asJSON bool
	var plots string
	cmd := &cobra.Command{
		Use:   "summarize JOBDIR",
		Short: "Sum up a job on one page: scores, errors, slow phases, tasks that flake, cost",
		Long: `summarize says in a few lines what 'job show' shows at length: how far the job
is, each group's metrics and mean with the number of trials behind it, the
exceptions by type with some of their trials, the phases that took longest, the
tasks whose attempts disagree, and what was spent where agents reported it. Where
rewards have more than two values their distribution is drawn, and how many trials
were in which phase when. --plots draws both into files, as SVG and as PNG.

No model is asked: everything is counted from the job's files.`,
		Example: `  proctor job summarize jobs/2026-06-09__10-00-00
  proctor job summarize --plots pictures jobs/2026-06-09__10-00-00
  proctor job summarize --json jobs/2026-06-09__10-00-00`,
		Args: oneDirectory("job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := readJob(cmd.Context(), env, args[0])
			if err != nil {
				return err
			}
			d := j.Digest()
			drawn := 0
			if plots != "" {
				if drawn, err = writePlots(plots, d); err != nil {
					return err
				}
			}
			if asJSON {
				return encodeJSON(env.Stdout, d)
			}
			printDigest(env.Stdout, d)
			if plots != "" {
				_, _ = fmt.Fprintf(env.Stdout, "\n%s in %s, as SVG and as PNG\n", count(drawn, "plot"), clean(plots))
			}
			printHowToResume(env.Stdout, j)
			return nil
		},
		ValidArgsFunction: completeDirs,
	}
	cmd.Flags().StringVar(&plots, "plots", "", "draw the plots into files of this `directory` too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, nothing else")
	return cmd
}

// maxFlakyRows is how many flaky tasks are listed for people.
const maxFlakyRows = 10

func printDigest(w io.Writer, d *report.Digest) {
	_, _ = lipgloss.Fprintln(w, console.Bold(clean(d.Dir)))
	_, _ = fmt.Fprintf(w, "%s%s; %d of %s a reward\n", d.State, timesText(d.Job), d.WithReward, console.CountHave(d.Planned, "planned trial"))
	for _, p := range d.Problems {
		_, _ = fmt.Fprintf(w, "problem: %s\n", clean(p))
	}
	for _, c := range outcomeTexts(d.Job) {
		_, _ = fmt.Fprintf(w, "  %d %s\n", d.Outcomes[c.class], c.text)
	}
	printSuspicions(w, d.Job)
	for _, e := range d.Evals {
		printEvalDigest(w, e)
	}
	if len(d.Exceptions) > 0 {
		_, _ = fmt.Fprintln(w, "\nExceptions:")
	}
	for _, e := range d.Exceptions {
		examples := strings.Join(cleanAll(e.Examples), ", ")
		if len(e.Examples) < e.Count {
			examples += ", …"
		}
		_, _ = fmt.Fprintf(w, "  %d %s: %s\n", e.Count, clean(e.Type), examples)
	}
	printFlaky(w, d.Flaky)
	if len(d.Slowest) > 0 {
		_, _ = fmt.Fprintln(w, "\nSlowest phases:")
	}
	for _, p := range d.Slowest {
		_, _ = fmt.Fprintf(w, "  %s  %s of %s\n", seconds(p.Seconds), clean(p.Phase), clean(p.Trial))
	}
	printPlots(w, d)
	if text := usageText(d.Usage); text != "" {
		_, _ = fmt.Fprintf(w, "\nSpent: %s\n", text)
	}
}

func printEvalDigest(w io.Writer, e report.DigestGroup) {
	_, _ = fmt.Fprintln(w)
	_, _ = lipgloss.Fprintln(w, console.Bold(clean(e.Group)))
	if e.Headline != "" {
		_, _ = fmt.Fprintf(w, "  %s\n", clean(e.Headline))
	}
	for _, m := range e.Means {
		_, _ = fmt.Fprintf(w, "  mean %s %s over %s (%s, %d with %s)%s\n", clean(m.Reward), console.Decimals(float64(m.Mean)),
			count(m.Tasks, "task"), count(m.Trials, "trial"), m.WithReward, jobcli.TheReward(len(e.Means) > 1), intervalOf(m))
	}
}

func intervalOf(m report.Mean) string {
	if math.IsNaN(float64(m.Low)) || math.IsNaN(float64(m.High)) {
		return ""
	}
	return fmt.Sprintf(", %g%% interval %s to %s", 100*m.Confidence, console.Decimals(float64(m.Low)), console.Decimals(float64(m.High)))
}

func printFlaky(w io.Writer, flaky []report.FlakyTask) {
	if len(flaky) == 0 {
		return
	}
	_, _ = fmt.Fprintln(w, "\nTasks whose attempts disagree:")
	for _, f := range flaky[:min(maxFlakyRows, len(flaky))] {
		texts := make([]string, len(f.Values))
		for i, r := range f.Values {
			texts[i] = jobcli.RewardsText(r)
		}
		_, _ = fmt.Fprintf(w, "  %s: %s  (%s)\n", clean(f.Task), strings.Join(texts, ", "), clean(f.Group))
	}
	if more := len(flaky) - maxFlakyRows; more > 0 {
		_, _ = fmt.Fprintf(w, "  and %d more\n", more)
	}
}

func usageText(u report.Usage) string {
	var parts []string
	for _, p := range []struct {
		n    json.RawMessage
		what string
	}{{u.Input, "input"}, {u.Cache, "cached"}, {u.Output, "output"}} {
		if string(p.n) != "null" {
			parts = append(parts, fmt.Sprintf("%s %s tokens", p.n, p.what))
		}
	}
	if u.Cost != nil {
		parts = append(parts, fmt.Sprintf("$%.4f", *u.Cost))
	}
	return strings.Join(parts, ", ")
}
