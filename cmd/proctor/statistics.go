package main

import (
	"fmt"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/score"
	"io"
	"math"
	"strings"
)

// groupOf finds the statistics of a group; without trials it has none.
func groupOf(s *score.Statistics, key string) score.GroupStatistics {
	for _, g := range s.Groups {
		if g.Group == key {
			return g
		}
	}
	return score.GroupStatistics{Group: key}
}

// printGroupStatistics says on what the numbers of a group rest.
func printGroupStatistics(w io.Writer, g score.GroupStatistics) {
	line := fmt.Sprintf("%s: %d scored, %d errored with a reward, %d errored without one (counted as 0)", count(g.Trials, "trial"),
		g.Outcomes[jobdir.ClassScored], g.Outcomes[jobdir.ClassErroredWithReward], g.Outcomes[jobdir.ClassErroredWithoutReward])
	if n := g.Outcomes[jobdir.ClassUnscored]; n > 0 {
		line += fmt.Sprintf(", %d without error and reward", n)
	}
	if n := g.Outcomes[jobdir.ClassCancelled]; n > 0 {
		line += fmt.Sprintf(", %d cancelled", n)
	}
	_, _ = fmt.Fprintln(w, line)
	for _, m := range g.Means {
		_, _ = fmt.Fprintln(w, meanText(m, len(g.Means) > 1))
	}
	if a := g.Agreement; a.Repeated > 0 {
		_, _ = fmt.Fprintf(w, "Attempts agree on %d of %s (%s), flake rate %s\n", a.Agreeing, count(a.Repeated, "repeated task"), percent(a.Share()), percent(a.FlakeRate))
	}
	_, _ = fmt.Fprintln(w)
}

func meanText(m score.NamedEstimate, named bool) string {
	what := "Mean"
	if named {
		what += " " + clean(m.Name)
	}
	return fmt.Sprintf("%s %s over %s (%s, %d with %s), %s", what, decimals(m.Mean), count(m.Tasks, "task"), count(m.Trials, "trial"), m.Scored, theReward(named), meanInterval(m.Estimate))
}

// theReward tells the reward of a mean from any: trials may have others only.
func theReward(named bool) string {
	if named {
		return "it"
	}
	return "a reward"
}

func meanInterval(e score.Estimate) string {
	switch {
	case e.Method != score.MethodNone:
		return fmt.Sprintf("%g%% interval %s to %s (%s)", 100*e.Confidence, decimals(e.Low), decimals(e.High), e.Method)
	case e.Tasks < 2:
		return "no interval with less than two tasks"
	}
	return "no interval"
}

// printCoverage says how many of the planned trials the numbers rest on.
func printCoverage(w io.Writer, s *score.Statistics) {
	_, _ = fmt.Fprintf(w, "Coverage: %d of %s a reward", s.WithReward, countHave(s.Planned, "planned trial"))
	if s.Planned > 0 {
		_, _ = fmt.Fprintf(w, " (%s)", percent(s.Coverage()))
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

// jsonStatistics are the statistics in the output of run, score and job show.
type jsonStatistics struct {
	Planned    int                   `json:"n_planned"`
	WithReward int                   `json:"n_with_reward"`
	Coverage   jsonNumber            `json:"coverage"` // n_with_reward / n_planned
	Outcomes   map[jobdir.Class]int  `json:"outcomes"`
	Groups     []jsonGroupStatistics `json:"groups"`
}

type jsonGroupStatistics struct {
	Group      string               `json:"group"`
	Trials     int                  `json:"n_trials"`
	WithReward int                  `json:"n_with_reward"`
	Outcomes   map[jobdir.Class]int `json:"outcomes"`
	Means      []jsonMean           `json:"means"`
	Agreement  jsonAgreement        `json:"attempts"`
}

type jsonMean struct {
	Reward        string       `json:"reward"`
	Mean          jsonNumber   `json:"mean"`
	Low           jsonNumber   `json:"low"`
	High          jsonNumber   `json:"high"`
	Confidence    float64      `json:"confidence"`
	Method        score.Method `json:"method"`
	StandardError jsonNumber   `json:"standard_error"`
	Tasks         int          `json:"n_tasks"`
	Trials        int          `json:"n_trials"`
	WithReward    int          `json:"n_with_reward"`
}

type jsonAgreement struct {
	Repeated  int        `json:"n_repeated"`
	Agreeing  int        `json:"n_agreeing"`
	Share     jsonNumber `json:"agreement"`
	FlakeRate jsonNumber `json:"flake_rate"`
}

func newJSONStatistics(s *score.Statistics) *jsonStatistics {
	out := &jsonStatistics{
		Planned: s.Planned, WithReward: s.WithReward, Coverage: jsonNumber(s.Coverage()),
		Outcomes: allClasses(s.Outcomes, jobdir.Classes()), Groups: []jsonGroupStatistics{},
	}
	for _, g := range s.Groups {
		group := jsonGroupStatistics{
			Group: g.Group, Trials: g.Trials, WithReward: g.WithReward, Means: []jsonMean{},
			// No trial of a group is pending: what has not ended has no group.
			Outcomes: allClasses(g.Outcomes, jobdir.Classes()[:len(jobdir.Classes())-1]),
			Agreement: jsonAgreement{
				Repeated: g.Agreement.Repeated, Agreeing: g.Agreement.Agreeing,
				Share: jsonNumber(g.Agreement.Share()), FlakeRate: jsonNumber(g.Agreement.FlakeRate),
			},
		}
		for _, m := range g.Means {
			group.Means = append(group.Means, jsonMean{
				Reward: m.Name, Mean: jsonNumber(m.Mean), Low: jsonNumber(m.Low), High: jsonNumber(m.High), Confidence: m.Confidence,
				Method: m.Method, StandardError: jsonNumber(m.StandardError), Tasks: m.Tasks, Trials: m.Trials, WithReward: m.Scored,
			})
		}
		out.Groups = append(out.Groups, group)
	}
	return out
}

// allClasses has every class, those that nothing is in with 0.
func allClasses(counts map[jobdir.Class]int, classes []jobdir.Class) map[jobdir.Class]int {
	out := map[jobdir.Class]int{}
	for _, c := range classes {
		out[c] = counts[c]
	}
	return out
}
