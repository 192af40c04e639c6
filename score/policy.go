package score

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/proctor-run/proctor/internal/bounded"
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

// PolicyFile holds, in the directory of a job, the policy that was fixed before the job
// ran, as [outcome.ParsePolicy] reads it. It is proctor's own; Harbor takes no notice.
const PolicyFile = "policy.json"

// maxPolicy bounds a policy's file, in bytes.
const maxPolicy = 1 << 20

// FixedPolicy is the policy that was fixed before the job in a directory ran; nil for a
// job without one.
func FixedPolicy(dir string) (*outcome.Policy, error) {
	data, err := bounded.ReadIn(dir, PolicyFile, maxPolicy)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the policy of the job: %w", err)
	}
	p, err := outcome.ParsePolicy(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, PolicyFile), err)
	}
	return &p, nil
}

// ReadPolicy reads the file of a policy that a user names.
func ReadPolicy(path string) (outcome.Policy, error) {
	data, err := bounded.ReadFile(path, maxPolicy)
	if err != nil {
		return outcome.Policy{}, err
	}
	p, err := outcome.ParsePolicy(data)
	if err != nil {
		return outcome.Policy{}, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// Of scores the trials of a job, in the order in which they count. A trial without
// rewards counts as 0, as it does in Harbor's mean. Errors are those of package outcome,
// and that of trials of several agents.
func (p Policy) Of(records []jobdir.Record) (PolicyScore, error) {
	trials := make([]outcome.TaskScore, 0, len(records))
	for i := range records {
		rec := &records[i]
		if first := &records[0]; rec.AgentName != first.AgentName || rec.ModelName != first.ModelName {
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
