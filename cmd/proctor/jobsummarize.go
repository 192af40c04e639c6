package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

func newJobSummarize(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "summarize JOBDIR",
		Short: "Sum up a job on one page: scores, errors, slow phases, tasks that flake, cost",
		Long: `summarize says in a few lines what 'job show' shows at length: how far the job
is, each group's metrics and mean with the number of trials behind it, the
exceptions by type with some of their trials, the phases that took longest, the
tasks whose attempts disagree, and what was spent where agents reported it.

No model is asked: everything is counted from the job's files.`,
		Example: `  proctor job summarize jobs/2026-06-09__10-00-00
  proctor job summarize --json jobs/2026-06-09__10-00-00`,
		Args: oneDirectory("job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			shown, err := readJobSummary(cmd.Context(), args[0], env.Now().Location())
			if err != nil {
				return err
			}
			d := newDigest(shown)
			if asJSON {
				return encodeJSON(env.Stdout, d)
			}
			printDigest(env.Stdout, d)
			return nil
		},
		ValidArgsFunction: completeDirs,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, nothing else")
	return cmd
}

// maxExamples is how many trials stand for an exception, and how many flaky
// tasks are listed for people.
const (
	maxExamples  = 3
	maxFlakyRows = 10
)

// jobDigest is what job summarize --json prints.
type jobDigest struct {
	Dir        string            `json:"dir"`
	State      string            `json:"state"`
	Planned    int               `json:"n_planned"`
	WithReward int               `json:"n_with_reward"`
	Outcomes   map[string]int    `json:"outcomes"`
	Evals      []evalDigest      `json:"evals"`
	Exceptions []exceptionDigest `json:"exceptions"`
	Slowest    []slowPhase       `json:"slowest"`
	Flaky      []flakyDigest     `json:"flaky"`
	Usage      usageDigest       `json:"usage"`
	Problems   []string          `json:"problems"`
	times      string
}

type evalDigest struct {
	Group string `json:"group"`
	// Headline is the first metric of the job's own result; empty without one.
	Headline   string     `json:"headline"`
	Trials     int        `json:"n_trials"`
	WithReward int        `json:"n_with_reward"`
	Means      []jsonMean `json:"means"`
}

type exceptionDigest struct {
	Type     string   `json:"type"`
	Count    int      `json:"n"`
	Examples []string `json:"examples"`
}

type flakyDigest struct {
	Group   string            `json:"group"`
	Task    string            `json:"task"`
	Rewards []json.RawMessage `json:"rewards"`
	texts   []string
}

// usageDigest is what agents reported; null where none did.
type usageDigest struct {
	Input  json.RawMessage `json:"n_input_tokens"`
	Cache  json.RawMessage `json:"n_cache_tokens"`
	Output json.RawMessage `json:"n_output_tokens"`
	Cost   *float64        `json:"cost_usd"`
}

func newDigest(s *jobSummary) *jobDigest {
	d := &jobDigest{
		Dir: s.Dir, State: s.State, Planned: s.Planned, WithReward: s.WithReward, Outcomes: s.Outcomes,
		Evals: []evalDigest{}, Exceptions: []exceptionDigest{}, Slowest: s.Slowest, Flaky: []flakyDigest{},
		Problems: s.Problems, times: timesText(s),
	}
	headlines := headlinesOf(s.Dir)
	for _, g := range s.Groups {
		d.Evals = append(d.Evals, evalDigest{Group: g.Group, Headline: headlines[g.Group], Trials: g.Trials, WithReward: g.WithReward, Means: g.Means})
	}
	for _, e := range s.Errors {
		d.Exceptions = append(d.Exceptions, exceptionDigest{Type: e.Type, Count: len(e.Trials), Examples: slices.Clone(e.Trials[:min(maxExamples, len(e.Trials))])})
	}
	records := make([]jobdir.Record, len(s.records))
	for i, r := range s.records {
		records[i] = r.Record
	}
	for _, t := range score.FlakyTasks(records) {
		f := flakyDigest{Group: t.Group, Task: t.Task}
		for _, r := range t.Rewards {
			f.Rewards = append(f.Rewards, rewardsDocument(r))
			f.texts = append(f.texts, rewardsOf(r))
		}
		d.Flaky = append(d.Flaky, f)
	}
	u := score.TotalUsage(records)
	d.Usage = usageDigest{Input: intJSON(u.NInputTokens), Cache: intJSON(u.NCacheTokens), Output: intJSON(u.NOutputTokens), Cost: finite(u.CostUSD)}
	return d
}

// headlinesOf reads the first metric of each group of the job's result.
func headlinesOf(dir string) map[string]string {
	headlines := map[string]string{}
	data, err := os.ReadFile(filepath.Join(dir, scan.ResultFile))
	if err != nil {
		return headlines // told among the problems
	}
	result, err := jobdir.ParseResult(data)
	if err != nil {
		return headlines
	}
	for key, e := range result.Stats.Evals.All() {
		if text, err := score.Headline(e); err == nil {
			headlines[key] = text
		}
	}
	return headlines
}

func rewardsDocument(r *reward.Rewards) json.RawMessage {
	if r == nil {
		return json.RawMessage("null")
	}
	return value.AppendPydantic(nil, r.Object(), 0)
}

func intJSON(n *value.Int) json.RawMessage {
	if n == nil {
		return json.RawMessage("null")
	}
	return n.Append(nil)
}

// finite leaves out what JSON has no number for.
func finite(x *float64) *float64 {
	if x == nil || math.IsNaN(*x) || math.IsInf(*x, 0) {
		return nil
	}
	return x
}

func printDigest(w io.Writer, d *jobDigest) {
	_, _ = lipgloss.Fprintln(w, styleBold.Render(clean(d.Dir)))
	_, _ = fmt.Fprintf(w, "%s%s; %d of %s a reward\n", d.State, d.times, d.WithReward, countHave(d.Planned, "planned trial"))
	for _, p := range d.Problems {
		_, _ = fmt.Fprintf(w, "problem: %s\n", clean(p))
	}
	for _, c := range classTexts {
		if n := d.Outcomes[c[0]]; n > 0 {
			_, _ = fmt.Fprintf(w, "  %d %s\n", n, c[1])
		}
	}
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
	if text := d.Usage.text(); text != "" {
		_, _ = fmt.Fprintf(w, "\nSpent: %s\n", text)
	}
}

func printEvalDigest(w io.Writer, e evalDigest) {
	_, _ = fmt.Fprintln(w)
	_, _ = lipgloss.Fprintln(w, styleBold.Render(clean(e.Group)))
	if e.Headline != "" {
		_, _ = fmt.Fprintf(w, "  %s\n", clean(e.Headline))
	}
	for _, m := range e.Means {
		_, _ = fmt.Fprintf(w, "  mean %s %s over %s (%s, %d with %s)%s\n", clean(m.Reward), decimals(float64(m.Mean)),
			count(m.Tasks, "task"), count(m.Trials, "trial"), m.WithReward, theReward(len(e.Means) > 1), intervalOf(m))
	}
}

func intervalOf(m jsonMean) string {
	if math.IsNaN(float64(m.Low)) || math.IsNaN(float64(m.High)) {
		return ""
	}
	return fmt.Sprintf(", %g%% interval %s to %s", 100*m.Confidence, decimals(float64(m.Low)), decimals(float64(m.High)))
}

func printFlaky(w io.Writer, flaky []flakyDigest) {
	if len(flaky) == 0 {
		return
	}
	_, _ = fmt.Fprintln(w, "\nTasks whose attempts disagree:")
	for _, f := range flaky[:min(maxFlakyRows, len(flaky))] {
		_, _ = fmt.Fprintf(w, "  %s: %s  (%s)\n", clean(f.Task), strings.Join(f.texts, ", "), clean(f.Group))
	}
	if more := len(flaky) - maxFlakyRows; more > 0 {
		_, _ = fmt.Fprintf(w, "  and %d more\n", more)
	}
}

func (u usageDigest) text() string {
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
