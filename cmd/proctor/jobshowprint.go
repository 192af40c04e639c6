package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
)

func printJobSummary(w io.Writer, s *jobSummary) {
	_, _ = lipgloss.Fprintln(w, styleBold.Render(clean(s.Dir)))
	_, _ = fmt.Fprintf(w, "%s%s\n\n", s.State, timesText(s))
	for _, p := range s.Problems {
		_, _ = fmt.Fprintf(w, "problem: %s\n", clean(p))
	}
	t := newTable("Outcome", "Trials")
	for _, c := range classTexts {
		if n := s.Outcomes[c[0]]; n > 0 {
			t.Row(c[1], strconv.Itoa(n))
		}
	}
	t.Row("planned", strconv.Itoa(s.Planned))
	_, _ = lipgloss.Fprintln(w, t.Render())
	_, _ = fmt.Fprintf(w, "Coverage: %d of %s a reward%s\n\n", s.WithReward, countHave(s.Planned, "planned trial"), percentText(float64(s.Coverage)))
	for _, g := range s.statistics.Groups {
		_, _ = lipgloss.Fprintln(w, styleBold.Render(clean(g.Group)))
		printGroupStatistics(w, g)
	}
	printErrors(w, s.Errors)
	printPhases(w, s)
	printJournal(w, s.Journal)
}

func timesText(s *jobSummary) string {
	if s.Started == nil {
		return ""
	}
	text := ", started " + s.Started.Format("2006-01-02 15:04:05")
	if s.Finished != nil {
		text += ", took " + runtimeText(s.Finished.Sub(*s.Started))
	}
	return text
}

func percentText(share float64) string {
	if math.IsNaN(share) {
		return ""
	}
	return fmt.Sprintf(" (%.1f%%)", 100*share)
}

func printErrors(w io.Writer, errs []errorSummary) {
	if len(errs) == 0 {
		return
	}
	t := newTable("Exception", "Count", "Trials")
	for _, e := range errs {
		names := cleanAll(e.Trials[:min(len(e.Trials), maxUnfinished)])
		if len(names) < len(e.Trials) {
			names = append(names, "…")
		}
		t.Row(clean(e.Type), strconv.Itoa(len(e.Trials)), strings.Join(names, "\n"))
	}
	_, _ = lipgloss.Fprintln(w, t.Render())
	_, _ = fmt.Fprintln(w)
}

func cleanAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = clean(s)
	}
	return out
}

func printPhases(w io.Writer, s *jobSummary) {
	if len(s.Phases) == 0 {
		return
	}
	t := newTable("Phase", "Count", "Total", "Median", "Longest")
	for _, p := range s.Phases {
		t.Row(p.Phase, strconv.Itoa(p.Trials), seconds(p.Total), seconds(p.Median), seconds(p.Longest))
	}
	_, _ = lipgloss.Fprintln(w, t.Render())
	_, _ = fmt.Fprintln(w, "Slowest:")
	for _, p := range s.Slowest {
		_, _ = fmt.Fprintf(w, "  %s  %s of %s\n", seconds(p.Seconds), clean(p.Phase), clean(p.Trial))
	}
}

func seconds(s float64) string {
	const most = float64(math.MaxInt64 / int64(time.Second))
	return duration(time.Duration(min(max(s, -most), most) * float64(time.Second)))
}
