package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/internal/suggest"
	"github.com/proctor-run/proctor/report"
	"github.com/proctor-run/proctor/score"
)

// compareFlags are the flags of compare.
type compareFlags struct {
	json bool
	opts score.CompareOptions
}

func newCompare(env *Env) *cobra.Command {
	f := &compareFlags{}
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare two jobs task by task",
		Long: `compare pairs two job directories by task. The attempts at a task are averaged,
a trial without rewards counting as 0 as it does in means. It shows wins, losses
and ties of B against A, the difference of the means with an interval, and how
often the attempts at one task disagree.

Tasks whose contents differ are not compared unless told to: it would compare
the tasks, not the agents.`,
		Example: `  proctor compare jobs/before jobs/after
  proctor compare --reward correctness --json jobs/before jobs/after`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return withHint(usageErrorf("accepts two job directories, got %d", len(args)), "proctor %s", cmd.Use)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd.Context(), env)
			defer stop()
			return compareJobs(ctx, env, f, args[0], args[1])
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.opts.Reward, "reward", "", "`name` of the reward to compare (default: the only one, or \"reward\")")
	fs.StringVar(&f.opts.GroupA, "group-a", "", "compare only this `group` of A, a key of stats.evals")
	fs.StringVar(&f.opts.GroupB, "group-b", "", "compare only this `group` of B")
	fs.Float64Var(&f.opts.Confidence, "confidence", 0.95, "confidence of the interval, as a `fraction`")
	fs.BoolVar(&f.opts.AllowDifferentTasks, "allow-different-tasks", false, "compare tasks although their contents differ")
	fs.BoolVar(&f.json, "json", false, "print one JSON object, nothing else")
	return cmd
}

func compareJobs(ctx context.Context, env *Env, f *compareFlags, dirA, dirB string) error {
	if !(f.opts.Confidence > 0 && f.opts.Confidence < 1) {
		return usageErrorf("--confidence %g: it is a fraction between 0 and 1", f.opts.Confidence)
	}
	c, err := report.Compare(ctx, dirA, dirB, f.opts)
	if err != nil {
		return f.refusal(err)
	}
	if f.json {
		return encodeJSON(env.Stdout, c)
	}
	printComparison(env.Stdout, c)
	return nil
}

// refusal says what to do about jobs that cannot be compared.
func (f *compareFlags) refusal(err error) error {
	if _, ok := errors.AsType[*report.NotFoundError](err); ok {
		return usageErrorf("%w", err)
	}
	if e, ok := errors.AsType[*report.NoGroupError](err); ok {
		return withHint(usageErrorf("%w", err), "it has: %s", strings.Join(e.Groups, ", "))
	}
	if _, ok := errors.AsType[*report.CompareError](err); !ok {
		return err
	}
	if _, ok := errors.AsType[*score.DifferentTasksError](err); ok {
		return withHint(usageErrorf("%w", err), "--allow-different-tasks compares them all the same")
	}
	if e, ok := errors.AsType[*score.SeveralRewardsError](err); ok {
		return withHint(usageErrorf("%w", err), "choose the one to compare with --reward NAME, as in --reward %s", e.Names[0])
	}
	if e, ok := errors.AsType[*score.NoSuchRewardError](err); ok {
		if hint := suggest.DidYouMean("", suggest.Nearest(e.Reward, e.Names)); hint != "" {
			return withHint(usageErrorf("%w", err), "%s", hint)
		}
	}
	if e, ok := errors.AsType[*score.NothingInCommonError](err); ok {
		if a, b := e.Namesakes(); a != "" {
			return withHint(usageErrorf("%w", err),
				"%s and %s count as two tasks: tasks are paired by dataset and name; run both jobs with the same -p or -d", a, b)
		}
	}
	return usageErrorf("%w", err)
}

func printComparison(w io.Writer, c *report.Comparison) {
	nameA, nameB := shortNames(c.A, c.B)
	if len(c.Tasks) <= jobcli.Rows {
		t := console.NewTable("Task", "A", "B", "B - A", "Trials")
		for _, p := range c.Tasks {
			t.Row(clean(taskCell(p)), console.Decimals(float64(p.A)), console.Decimals(float64(p.B)), signed(float64(p.B-p.A)), fmt.Sprintf("%d, %d", p.TrialsA, p.TrialsB))
		}
		_, _ = lipgloss.Fprintln(w, t.Render())
		_, _ = fmt.Fprintln(w)
	}
	trialsA, trialsB := 0, 0
	for _, p := range c.Tasks {
		trialsA, trialsB = trialsA+p.TrialsA, trialsB+p.TrialsB
	}
	_, _ = fmt.Fprintf(w, "A  %s: mean %s (%s)\n", clean(nameA), console.Decimals(float64(c.MeanA)), count(trialsA, "trial"))
	_, _ = fmt.Fprintf(w, "B  %s: mean %s (%s)\n", clean(nameB), console.Decimals(float64(c.MeanB)), count(trialsB, "trial"))
	_, _ = fmt.Fprintf(w, "B - A: %s, %s over %s in both\n", signed(float64(c.Difference)), intervalText(c), count(len(c.Tasks), "task"))
	_, _ = fmt.Fprintf(w, "B wins %d, loses %d, ties %d; sign test p = %s\n", c.Wins, c.Losses, c.Ties, console.Decimals(float64(c.SignP)))
	_, _ = fmt.Fprintf(w, "Flaky tasks: A %s, B %s\n", flakeText(c.FlakesA), flakeText(c.FlakesB))
	printOnly(w, "A", c.OnlyA)
	printOnly(w, "B", c.OnlyB)
}

// shortNames are the last parts of two paths, or the paths where these agree.
func shortNames(a, b string) (string, string) {
	if x, y := filepath.Base(a), filepath.Base(b); x != y {
		return x, y
	}
	return a, b
}

func taskCell(p report.TaskPair) string {
	if p.DifferentContent {
		return p.Task + " (contents differ)"
	}
	return p.Task
}

func signed(x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf("%+.3f", x)
}

func intervalText(c *report.Comparison) string {
	if math.IsNaN(float64(c.Low)) {
		return "no interval with less than two tasks,"
	}
	return fmt.Sprintf("%g%% interval %s to %s", c.Confidence*100, signed(float64(c.Low)), signed(float64(c.High)))
}

func flakeText(f report.Flakes) string {
	if f.Repeated == 0 {
		return "unknown (one attempt each)"
	}
	return fmt.Sprintf("%d of %d (%.0f%%)", f.Flaky, f.Repeated, 100*float64(f.Flaky)/float64(f.Repeated))
}

func printOnly(w io.Writer, name string, tasks []string) {
	if len(tasks) == 0 {
		return
	}
	text := strings.Join(tasks[:min(len(tasks), maxUnfinished)], ", ")
	if len(tasks) > maxUnfinished {
		text += ", …"
	}
	_, _ = fmt.Fprintf(w, "Only in %s, not compared: %s: %s\n", name, count(len(tasks), "task"), clean(text))
}
