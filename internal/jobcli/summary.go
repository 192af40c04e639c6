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

// PrintSummary prints the results of a job: its trials when they are few, then
// Harbor's tables for each group of trials, with how many trials each number
// rests on and how far it can be trusted.
func PrintSummary(w io.Writer, out *job.Summary) {
	if len(out.Records) <= Rows {
		printTrials(w, out.Records)
	}
	stats := report.NewStatistics(&out.Statistics)
	for key, e := range out.Result.Stats.Evals.All() {
		printGroup(w, key, e, out, groupOf(stats, key))
	}
	printCoverage(w, stats)
}

func printTrials(w io.Writer, records []jobdir.Record) {
	t := console.NewTable("Trial", "Rewards", "Exception")
	for _, r := range records {
		t.Row(console.Clean(r.TrialName), RewardsText(r.Rewards), console.Clean(r.ExceptionType))
	}
	_, _ = lipgloss.Fprintln(w, t.Render())
	_, _ = fmt.Fprintln(w)
}

func printGroup(w io.Writer, key string, e *jobdir.Eval, out *job.Summary, stats report.GroupStatistics) {
	_, _ = lipgloss.Fprintln(w, console.Bold(groupTitle(key, out)))
	header := []string{"Trials", "Exceptions"}
	row := []string{strconv.Itoa(e.NTrials), strconv.Itoa(e.NErrors)}
	for i, m := range e.Metrics {
		for name, v := range m.All() {
			if len(e.Metrics) > 1 {
				name = fmt.Sprintf("Metric %d: %s", i+1, name)
			}
			header, row = append(header, console.Clean(console.TitleCase(name))), append(row, numberCell(v))
		}
	}
	for _, p := range e.PassAtK {
		header, row = append(header, fmt.Sprintf("Pass@%d", p.K)), append(row, fmt.Sprintf("%.3f", p.Value))
	}
	t := console.NewTable(header...)
	t.Row(row...)
	_, _ = lipgloss.Fprintln(w, t.Render())
	PrintGroupStatistics(w, stats)
	printCounts(w, e)
}

func printCounts(w io.Writer, e *jobdir.Eval) {
	rewards := console.NewTable("Reward", "Count")
	some := false
	for _, name := range e.RewardStats.Names() {
		for _, entry := range e.RewardStats.Entries(name) {
			some = true
			rewards.Row(value.Repr(entry.Value), strconv.Itoa(len(entry.Trials)))
		}
	}
	if some {
		_, _ = lipgloss.Fprintln(w, rewards.Render())
		_, _ = fmt.Fprintln(w)
	}
	if e.ExceptionStats.Len() == 0 {
		return
	}
	exceptions := console.NewTable("Exception", "Count")
	for typ, names := range e.ExceptionStats.All() {
		exceptions.Row(console.Clean(typ), strconv.Itoa(len(names)))
	}
	_, _ = lipgloss.Fprintln(w, exceptions.Render())
	_, _ = fmt.Fprintln(w)
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
