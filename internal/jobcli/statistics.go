package jobcli

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/report"
	"github.com/proctor-run/proctor/score"
)

// groupOf finds the statistics of a group; without trials it has none.
func groupOf(s *report.Statistics, key string) report.GroupStatistics {
	for _, g := range s.Groups {
		if g.Group == key {
			return g
		}
	}
	return report.GroupStatistics{Group: key}
}

// PrintGroupStatistics says on what the numbers of a group rest. The trials of its mean
// are those that were counted, but where there are several rewards.
func PrintGroupStatistics(w io.Writer, g report.GroupStatistics) {
	line := fmt.Sprintf("%s: %d scored, %d errored with a reward, %d errored without one (counted as 0)", console.Count(g.Trials, "trial"),
		g.Outcomes[jobdir.ClassScored], g.Outcomes[jobdir.ClassErroredWithReward], g.Outcomes[jobdir.ClassErroredWithoutReward])
	if n := g.Outcomes[jobdir.ClassUnscored]; n > 0 {
		line += fmt.Sprintf(", %d without error and reward", n)
	}
	if n := g.Outcomes[jobdir.ClassCancelled]; n > 0 {
		line += fmt.Sprintf(", %d cancelled", n)
	}
	_, _ = fmt.Fprintln(w, line)
	for _, m := range g.Means {
		_, _ = fmt.Fprintln(w, meanText(m, len(g.Means) > 1, g.Outcomes[jobdir.ClassCancelled] > 0))
	}
	if a := g.Attempts; a.Repeated > 0 {
		_, _ = fmt.Fprintf(w, "Attempts agree on %d of %s (%s), flake rate %s\n", a.Agreeing, console.Count(a.Repeated, "repeated task"), percent(float64(a.Share)), percent(float64(a.FlakeRate)))
	}
}

func meanText(m report.Mean, named, cancelled bool) string {
	text := "Mean"
	if named {
		text += " " + console.Clean(m.Reward)
	}
	text += fmt.Sprintf(" %s over %s", console.Decimals(float64(m.Mean)), console.Count(m.Tasks, "task"))
	if named {
		text += fmt.Sprintf(" (%s, %d with %s)", console.Count(m.Trials, "trial"), m.WithReward, TheReward(named))
	}
	return text + ", " + meanInterval(m, cancelled)
}

// TheReward tells the reward of a mean from any: trials may have others only.
func TheReward(named bool) string {
	if named {
		return "it"
	}
	return "a reward"
}

func meanInterval(m report.Mean, cancelled bool) string {
	switch {
	case m.Method != score.MethodNone:
		return fmt.Sprintf("%g%% interval %s to %s (%s)", 100*m.Confidence, console.Decimals(float64(m.Low)), console.Decimals(float64(m.High)), m.Method)
	case cancelled:
		return "no interval: trials were cancelled"
	case m.Tasks < 2:
		return "no interval with less than two tasks"
	}
	return "no interval"
}

// printCoverage says how many of the planned trials the numbers rest on, unless the line
// of the only group has said that all have a reward.
func printCoverage(w io.Writer, s *report.Statistics) {
	if len(s.Groups) == 1 && s.WithReward == s.Planned {
		return
	}
	_, _ = fmt.Fprintf(w, "Coverage: %d of %s a reward", s.WithReward, console.CountHave(s.Planned, "planned trial"))
	if s.Planned > 0 {
		_, _ = fmt.Fprintf(w, " (%s)", percent(float64(s.Coverage)))
	}
	if n := s.Outcomes[jobdir.ClassPending]; n > 0 {
		_, _ = fmt.Fprintf(w, ", %d pending", n)
	}
	_, _ = fmt.Fprint(w, "\n\n")
}

func percent(share float64) string {
	if math.IsNaN(share) {
		return "-"
	}
	return strings.TrimPrefix(fmt.Sprintf("%.1f%%", 100*share), "-")
}
