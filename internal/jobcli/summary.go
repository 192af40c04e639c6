package jobcli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/report"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// Tables and titles are styled; lipgloss.Fprintln leaves the styles out where
// the writer is no terminal.

// Rows is up to how many trials are listed one by one.
const Rows = 40

// PrintSummary prints the results of a job, each number once: its trials when they are
// few, then for each group of trials on how many its mean rests and how far it can be
// trusted. What trials that are not listed ended with is counted.
func PrintSummary(w io.Writer, out *job.Summary) {
	listed := len(out.Records) <= Rows
	if listed {
		printTrials(w, out.Records)
	}
	stats := report.NewStatistics(&out.Statistics)
	for key, e := range out.Result.Stats.Evals.All() {
		group := groupOf(stats, key)
		_, _ = lipgloss.Fprintln(w, console.Bold(groupTitle(key, out)))
		PrintGroupStatistics(w, group)
		printMetrics(w, e, group)
		if !listed {
			printCounts(w, e)
		}
		_, _ = fmt.Fprintln(w)
	}
	printCoverage(w, stats)
}

func printTrials(w io.Writer, records []jobdir.Record) {
	t := console.NewTable("Trial", "Rewards", "Exception")
	for _, r := range records {
		typ := console.Clean(r.Exception())
		if typ != "" && r.ExceptionType == "" {
			typ += " (a step)"
		}
		t.Row(console.Clean(r.TrialName), RewardsText(r.Rewards), typ)
	}
	_, _ = lipgloss.Fprintln(w, t.Render())
	_, _ = fmt.Fprintln(w)
}

// printMetrics prints what Harbor's metrics say besides what the means of the statistics
// do: other metrics, a mean that is not that over the tasks, pass@k.
func printMetrics(w io.Writer, e *jobdir.Eval, stats report.GroupStatistics) {
	said := map[string]bool{}
	for _, m := range stats.Means {
		said["Mean "+console.Decimals(float64(m.Mean))] = len(stats.Means) == 1
		said[console.TitleCase(m.Reward)+" "+console.Decimals(float64(m.Mean))] = true
	}
	var parts []string
	for i, m := range e.Metrics {
		for name, v := range m.All() {
			text := console.Clean(console.TitleCase(name)) + " " + numberCell(v)
			if said[text] && i == 0 {
				continue
			}
			if len(e.Metrics) > 1 {
				text = fmt.Sprintf("%d. %s", i+1, text)
			}
			parts = append(parts, text)
		}
	}
	for _, p := range e.PassAtK {
		parts = append(parts, fmt.Sprintf("Pass@%d %.3f", p.K, p.Value))
	}
	if len(parts) > 0 {
		_, _ = fmt.Fprintf(w, "Metrics: %s\n", strings.Join(parts, ", "))
	}
}

// printCounts counts rewards by their number, however it was written, and exceptions by
// their type.
func printCounts(w io.Writer, e *jobdir.Eval) {
	rewards, some := console.NewTable("Reward", "Count"), false
	for _, c := range countRewards(e) {
		some = true
		rewards.Row(c.text, strconv.Itoa(c.trials))
	}
	if some {
		_, _ = lipgloss.Fprintln(w, rewards.Render())
	}
	if e.ExceptionStats.Len() == 0 {
		return
	}
	exceptions := console.NewTable("Exception", "Count")
	for typ, names := range e.ExceptionStats.All() {
		exceptions.Row(console.Clean(typ), strconv.Itoa(len(names)))
	}
	_, _ = lipgloss.Fprintln(w, exceptions.Render())
}

type rewardCount struct {
	text   string
	trials int
}

// countRewards adds up rewards of one name that are the same number: Harbor's files keep
// an int apart from a float.
func countRewards(e *jobdir.Eval) []rewardCount {
	var all []rewardCount
	names := e.RewardStats.Names()
	for _, name := range names {
		at := map[float64]int{}
		for _, entry := range e.RewardStats.Entries(name) {
			text := value.Repr(entry.Value)
			x, err := value.ToFloat(entry.Value)
			ok := err == nil // an int beyond all floats is itself alone
			if i, seen := at[x]; ok && seen {
				all[i].trials += len(entry.Trials)
				continue
			}
			if ok {
				at[x] = len(all)
				text = value.Repr(value.Float(x))
			}
			if len(names) > 1 {
				text = console.Clean(name) + " " + text
			}
			all = append(all, rewardCount{text, len(entry.Trials)})
		}
	}
	return all
}

// groupTitle names dataset, agent and model. The key of a group cannot be
// split again, so the names come from its first trial.
func groupTitle(key string, out *job.Summary) string {
	for _, r := range out.Records {
		if r.EvalsKey() == key {
			parts := []string{r.Dataset(), r.AgentName}
			if r.ModelName != "" {
				parts = append(parts, r.ModelName)
			}
			return console.Clean(strings.Join(parts, " • "))
		}
	}
	return console.Clean(key)
}

func numberCell(v value.Value) string {
	if f, ok := v.(value.Float); ok {
		return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%.3f", float64(f)), "+"))
	}
	return console.Clean(value.Repr(v))
}

// RewardsText shows a single reward as its number and several with their names.
func RewardsText(r *reward.Rewards) string {
	if r == nil {
		return "-"
	}
	var parts []string
	for name, x := range r.All() {
		if r.Len() == 1 {
			return value.Repr(x)
		}
		parts = append(parts, fmt.Sprintf("%s=%s", console.Clean(name), value.Repr(x)))
	}
	return strings.Join(parts, " ")
}

func rewardsText(r *jobdir.TrialResult) string {
	if r.VerifierResult == nil {
		return "no reward"
	}
	return "reward " + RewardsText(r.VerifierResult.Rewards)
}
