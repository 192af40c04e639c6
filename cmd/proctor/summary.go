package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/report"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// Tables and titles are styled; lipgloss.Fprintln leaves the styles out where
// the writer is no terminal.

// trialRows is up to how many trials are listed one by one.
const trialRows = 40

// printSummary prints the results of a job: its trials when they are few, then
// Harbor's tables for each group of trials, with how many trials each number
// rests on and how far it can be trusted.
func printSummary(w io.Writer, out *job.Summary) {
	if len(out.Records) <= trialRows {
		printTrials(w, out.Records)
	}
	stats := report.NewStatistics(&out.Statistics)
	for key, e := range out.Result.Stats.Evals.All() {
		printGroup(w, key, e, out, groupOf(stats, key))
	}
	printCoverage(w, stats)
}

func printTrials(w io.Writer, records []jobdir.Record) {
	t := newTable("Trial", "Rewards", "Exception")
	for _, r := range records {
		t.Row(clean(r.TrialName), rewardsOf(r.Rewards), clean(r.ExceptionType))
	}
	_, _ = lipgloss.Fprintln(w, t.Render())
	_, _ = fmt.Fprintln(w)
}

func printGroup(w io.Writer, key string, e *jobdir.Eval, out *job.Summary, stats report.GroupStatistics) {
	_, _ = lipgloss.Fprintln(w, styleBold.Render(groupTitle(key, out)))
	header := []string{"Trials", "Exceptions"}
	row := []string{strconv.Itoa(e.NTrials), strconv.Itoa(e.NErrors)}
	for i, m := range e.Metrics {
		for name, v := range m.All() {
			if len(e.Metrics) > 1 {
				name = fmt.Sprintf("Metric %d: %s", i+1, name)
			}
			header, row = append(header, clean(titleCase(name))), append(row, numberCell(v))
		}
	}
	for _, p := range e.PassAtK {
		header, row = append(header, fmt.Sprintf("Pass@%d", p.K)), append(row, fmt.Sprintf("%.3f", p.Value))
	}
	t := newTable(header...)
	t.Row(row...)
	_, _ = lipgloss.Fprintln(w, t.Render())
	printGroupStatistics(w, stats)
	printCounts(w, e)
}

func printCounts(w io.Writer, e *jobdir.Eval) {
	rewards := newTable("Reward", "Count")
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
	exceptions := newTable("Exception", "Count")
	for typ, names := range e.ExceptionStats.All() {
		exceptions.Row(clean(typ), strconv.Itoa(len(names)))
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
			return clean(strings.Join(parts, " • "))
		}
	}
	return clean(key)
}

// newTable has Harbor's frame: heavy around the header, light below.
func newTable(header ...string) *table.Table {
	border := lipgloss.NormalBorder()
	border.Top, border.TopLeft, border.TopRight, border.MiddleTop = "━", "┏", "┓", "┳"
	border.MiddleLeft, border.MiddleRight, border.Middle = "┡", "┩", "╇"
	return table.New().Border(border).Headers(header...).StyleFunc(func(row, _ int) lipgloss.Style {
		style := lipgloss.NewStyle().Padding(0, 1)
		if row == table.HeaderRow {
			style = style.Bold(true)
		}
		return style
	})
}

func numberCell(v value.Value) string {
	if f, ok := v.(value.Float); ok {
		return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%.3f", float64(f)), "+"))
	}
	return clean(value.Repr(v))
}

func titleCase(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// rewardsOf shows a single reward as its number and several with their names.
func rewardsOf(r *reward.Rewards) string {
	if r == nil {
		return "-"
	}
	var parts []string
	for name, x := range r.All() {
		if r.Len() == 1 {
			return value.Repr(x)
		}
		parts = append(parts, fmt.Sprintf("%s=%s", clean(name), value.Repr(x)))
	}
	return strings.Join(parts, " ")
}

func rewardsText(r *jobdir.TrialResult) string {
	if r.VerifierResult == nil {
		return "no reward"
	}
	return "reward " + rewardsOf(r.VerifierResult.Rewards)
}

// runtimeText is a whole number of seconds as Harbor writes it.
func runtimeText(d time.Duration) string {
	s := int(d.Seconds())
	switch {
	case s >= 3600:
		return fmt.Sprintf("%dh %dm %ds", s/3600, s/60%60, s%60)
	case s >= 60:
		return fmt.Sprintf("%dm %ds", s/60, s%60)
	}
	return fmt.Sprintf("%ds", s)
}
