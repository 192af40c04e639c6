package report

import (
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/score"
)

// Statistics say how far the result of a job can be trusted: on how many of its
// planned trials it rests, and how much it could differ by chance. They are in the
// JSON of proctor run, score and job show.
type Statistics struct {
	Planned    int                  `json:"n_planned"`
	WithReward int                  `json:"n_with_reward"`
	Coverage   Number               `json:"coverage"` // n_with_reward / n_planned
	Outcomes   map[jobdir.Class]int `json:"outcomes"`
	Groups     []GroupStatistics    `json:"groups"`
}

// GroupStatistics are the statistics of one group of trials: those of one agent,
// model and dataset.
type GroupStatistics struct {
	Group      string               `json:"group"`
	Trials     int                  `json:"n_trials"`
	WithReward int                  `json:"n_with_reward"`
	Outcomes   map[jobdir.Class]int `json:"outcomes"`
	Means      []Mean               `json:"means"`
	Attempts   Agreement            `json:"attempts"`
}

// Mean is the mean of one reward over tasks, with an interval that holds the mean
// of all tasks of the kind with the given confidence (a fraction of 1).
type Mean struct {
	Reward        string       `json:"reward"`
	Mean          Number       `json:"mean"`
	Low           Number       `json:"low"`
	High          Number       `json:"high"`
	Confidence    float64      `json:"confidence"`
	Method        score.Method `json:"method"`
	StandardError Number       `json:"standard_error"`
	Tasks         int          `json:"n_tasks"`
	Trials        int          `json:"n_trials"`
	WithReward    int          `json:"n_with_reward"`
}

// Agreement says how often several attempts at one task have the same rewards.
type Agreement struct {
	Repeated  int    `json:"n_repeated"`
	Agreeing  int    `json:"n_agreeing"`
	Share     Number `json:"agreement"`
	FlakeRate Number `json:"flake_rate"`
}

// NewStatistics gives statistics the form in which they are reported.
func NewStatistics(s *score.Statistics) *Statistics {
	out := &Statistics{
		Planned: s.Planned, WithReward: s.WithReward, Coverage: Number(s.Coverage()),
		Outcomes: allClasses(s.Outcomes, jobdir.Classes()), Groups: []GroupStatistics{},
	}
	for _, g := range s.Groups {
		group := GroupStatistics{
			Group: g.Group, Trials: g.Trials, WithReward: g.WithReward, Means: []Mean{},
			// No trial of a group is pending: what has not ended has no group.
			Outcomes: allClasses(g.Outcomes, jobdir.Classes()[:len(jobdir.Classes())-1]),
			Attempts: Agreement{
				Repeated: g.Agreement.Repeated, Agreeing: g.Agreement.Agreeing,
				Share: Number(g.Agreement.Share()), FlakeRate: Number(g.Agreement.FlakeRate),
			},
		}
		for _, m := range g.Means {
			group.Means = append(group.Means, Mean{
				Reward: m.Name, Mean: Number(m.Mean), Low: Number(m.Low), High: Number(m.High), Confidence: m.Confidence,
				Method: m.Method, StandardError: Number(m.StandardError), Tasks: m.Tasks, Trials: m.Trials, WithReward: m.Scored,
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
