package score

import (
	"errors"
	"fmt"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/value"
)

// Policy says how the trials of a job become one score where Harbor's mean is not
// meant: the attempts at a task first, then the tasks that count (outcome mapping,
// sections 9 and 10).
type Policy struct {
	Aggregation outcome.Aggregation
	Keep        outcome.Keep
	// Fixed: the policy was fixed before the job ran (section 10.1), which asks more of
	// the job: the same number of trials of every task, and scores within 0 to 1.
	Fixed bool
}

// PolicyScore is a job's score under a [Policy].
type PolicyScore struct {
	outcome.JobScore
	Policy Policy
	// Tasks in the order of their first trials, or sorted for a policy that is fixed.
	Tasks []outcome.TaskScore
	// PassedTrials scored exactly 1. It is counted for a policy that is fixed.
	PassedTrials int
}

var errSeveralAgents = errors.New("the job has trials of several agents or models, and a policy makes one score of one agent's")

// Policy scores the job. A trial without rewards counts as 0, as it does in Harbor's
// mean. Errors are those of package outcome, and that of a job with several agents.
func (r *Rescored) Policy(p Policy) (PolicyScore, error) {
	trials := make([]outcome.TaskScore, 0, len(r.Records))
	for i := range r.Records {
		rec := &r.Records[i].Record
		if first := &r.Records[0].Record; rec.AgentName != first.AgentName || rec.ModelName != first.ModelName {
			return PolicyScore{}, errSeveralAgents
		}
		score, err := trialScore(rec)
		if err != nil {
			return PolicyScore{}, fmt.Errorf("trial %q: %w", rec.TrialName, err)
		}
		trials = append(trials, outcome.TaskScore{Task: rec.TaskName, Score: score})
	}
	groups := outcome.GroupByTask(trials)
	out := PolicyScore{Policy: p}
	if p.Fixed {
		s, err := outcome.Policy{Aggregation: p.Aggregation, Keep: p.Keep}.Of(groups)
		out.JobScore, out.Tasks, out.PassedTrials = s.JobScore, s.Tasks, s.PassedTrials
		return out, err
	}
	var err error
	if out.Tasks, err = p.Aggregation.PerTask(groups); err != nil {
		return PolicyScore{}, err
	}
	scores := make([]float64, len(out.Tasks))
	for i, t := range out.Tasks {
		scores[i] = t.Score
	}
	out.JobScore, err = p.Keep.Of(scores)
	return out, err
}

func trialScore(r *jobdir.Record) (float64, error) {
	var rewards *value.Object
	if r.Rewards != nil {
		rewards = r.Rewards.Object()
	}
	return outcome.TrialScore(rewards)
}
