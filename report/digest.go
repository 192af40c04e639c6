package report

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

// Digest sums a job up on one page: what proctor job summarize --json prints.
type Digest struct {
	Dir        string               `json:"dir"`
	State      State                `json:"state"`
	Planned    int                  `json:"n_planned"`
	WithReward int                  `json:"n_with_reward"`
	Outcomes   map[jobdir.Class]int `json:"outcomes"` // as in [Job]
	Evals      []DigestGroup        `json:"evals"`
	Exceptions []DigestException    `json:"exceptions"`
	Slowest    []SlowPhase          `json:"slowest"`
	Flaky      []FlakyTask          `json:"flaky"`
	Usage      Usage                `json:"usage"`
	Histograms []Histogram          `json:"histograms"`
	Timeline   *Timeline            `json:"timeline"` // null where no phase took time
	Problems   []string             `json:"problems"`
	// Job is what is summed up.
	Job *Job `json:"-"`
}

// DigestGroup is the result of one group of trials.
type DigestGroup struct {
	Group string `json:"group"`
	// Headline is the first metric of the job's own result; empty without one.
	Headline   string `json:"headline"`
	Trials     int    `json:"n_trials"`
	WithReward int    `json:"n_with_reward"`
	Means      []Mean `json:"means"`
}

// DigestException is a type of exception, with some of the trials that ended with it.
type DigestException struct {
	Type     string   `json:"type"`
	Count    int      `json:"n"`
	Examples []string `json:"examples"`
}

// FlakyTask is a task whose attempts have different rewards.
type FlakyTask struct {
	Group   string            `json:"group"`
	Task    string            `json:"task"`
	Rewards []json.RawMessage `json:"rewards"` // per attempt; null without
	// Values are the same rewards, nil without.
	Values []*reward.Rewards `json:"-"`
}

// Usage is what agents reported in sum: tokens, and US dollars; null where none did.
type Usage struct {
	Input  json.RawMessage `json:"n_input_tokens"`
	Cache  json.RawMessage `json:"n_cache_tokens"`
	Output json.RawMessage `json:"n_output_tokens"`
	Cost   *float64        `json:"cost_usd"`
}

// maxExamples is how many trials stand for an exception.
const maxExamples = 3

// Digest sums the job up. It reads the job's result once more.
func (j *Job) Digest() *Digest {
	d := &Digest{
		Dir: j.Dir, State: j.State, Planned: j.Planned, WithReward: j.WithReward, Outcomes: j.Outcomes,
		Evals: []DigestGroup{}, Exceptions: []DigestException{}, Slowest: j.Slowest, Flaky: []FlakyTask{},
		Problems: j.Problems, Histograms: j.Histograms(), Timeline: j.Timeline(), Job: j,
	}
	headlines := headlinesOf(j.Dir)
	for _, g := range j.Groups {
		d.Evals = append(d.Evals, DigestGroup{Group: g.Group, Headline: headlines[g.Group], Trials: g.Trials, WithReward: g.WithReward, Means: g.Means})
	}
	for _, e := range j.Exceptions {
		d.Exceptions = append(d.Exceptions, DigestException{Type: e.Type, Count: len(e.Trials), Examples: slices.Clone(e.Trials[:min(maxExamples, len(e.Trials))])})
	}
	records := make([]jobdir.Record, len(j.records))
	for i, r := range j.records {
		records[i] = r.Record
	}
	for _, t := range score.FlakyTasks(records) {
		f := FlakyTask{Group: t.Group, Task: t.Task, Values: t.Rewards}
		for _, r := range t.Rewards {
			f.Rewards = append(f.Rewards, rewardsJSON(&jobdir.VerifierResult{Rewards: r}))
		}
		d.Flaky = append(d.Flaky, f)
	}
	u := score.TotalUsage(records)
	d.Usage = Usage{Input: intJSON(u.NInputTokens), Cache: intJSON(u.NCacheTokens), Output: intJSON(u.NOutputTokens), Cost: finite(u.CostUSD)}
	return d
}

// headlinesOf reads the first metric of each group of the job's result.
func headlinesOf(dir string) map[string]string {
	headlines := map[string]string{}
	data, err := jobdir.ReadJobFile(dir, scan.ResultFile)
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
