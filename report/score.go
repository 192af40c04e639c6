package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

// Score is a job that was aggregated again from the results of its trials: what
// proctor score --json prints per job.
type Score struct {
	Job        string   `json:"job"`
	Trials     int      `json:"n_trials"`
	Unfinished []string `json:"unfinished"`
	Warnings   []string `json:"warnings"`
	// Statistics say how far the result can be trusted.
	Statistics *Statistics `json:"statistics"`
	// Equal and Differences are there after [Score.Compare].
	Equal       *bool        `json:"equal,omitempty"`
	Differences []Difference `json:"differences,omitempty"`
	// Findings of the job's verification, the differences among them, where one was asked for.
	Findings []Finding `json:"findings,omitempty"`
	// Policy is the score under a policy other than Harbor's mean, where one was asked for.
	Policy *PolicyScore `json:"policy,omitempty"`
	// Result is what the trials give, as result.json has it.
	Result json.RawMessage `json:"result"`
}

// PolicyScore is a job's score under a policy, see [score.PolicyScore].
type PolicyScore struct {
	Aggregation string      `json:"per_task_aggregation"`
	Keep        string      `json:"keep_policy"`
	DropLowest  *int        `json:"drop_lowest_n,omitempty"`
	Threshold   *Number     `json:"threshold,omitempty"`
	Fixed       bool        `json:"fixed"`
	Score       Number      `json:"score"`
	Kept        int         `json:"n_kept_tasks"`
	Passed      int         `json:"n_passed_tasks"`
	Total       int         `json:"n_tasks"`
	Tasks       []TaskScore `json:"tasks"`
}

// TaskScore is the score of one task under a policy, and whether it counts.
type TaskScore struct {
	Task  string `json:"task"`
	Score Number `json:"score"`
	Kept  bool   `json:"kept"`
}

// NewPolicyScore gives a score the form in which it is reported.
func NewPolicyScore(s *score.PolicyScore) *PolicyScore {
	out := &PolicyScore{
		Aggregation: string(cmp.Or(s.Policy.Aggregation, outcome.MeanOfAttempts)), Keep: string(cmp.Or(s.Policy.Keep.Policy, outcome.KeepAll)),
		Fixed: s.Policy.Fixed, Score: Number(s.Score), Kept: len(s.Kept), Passed: s.Passed, Total: s.Total, Tasks: []TaskScore{},
	}
	switch s.Policy.Keep.Policy {
	case outcome.DropLowest:
		out.DropLowest = &s.Policy.Keep.Drop
	case outcome.KeepAboveBound:
		out.Threshold = new(Number(s.Policy.Keep.Threshold))
	}
	for i, t := range s.Tasks {
		_, kept := slices.BinarySearch(s.KeptAt, i)
		out.Tasks = append(out.Tasks, TaskScore{Task: t.Task, Score: Number(t.Score), Kept: kept})
	}
	return out
}

// Value is the score as a result line has it.
func (s *PolicyScore) Value() (value.Value, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("writing a policy's score: %w", err)
	}
	v, err := value.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("writing a policy's score: %w", err)
	}
	return v, nil
}

// Difference is a field of the job's stored result that is not what its trials
// give.
type Difference struct {
	Group    string `json:"group,omitempty"`
	Trial    string `json:"trial,omitempty"`
	Field    string `json:"field"`
	Stored   string `json:"stored"`
	Computed string `json:"computed"`
}

// NewScore gives a job that was aggregated again the form in which it is reported.
func NewScore(r *score.Rescored) *Score {
	statistics := score.NewStatistics(r.Trials(), r.Result.NTotalTrials)
	return &Score{
		Job: r.Dir, Trials: len(r.Records), Unfinished: orEmpty(r.Unfinished), Warnings: orEmpty(r.Warnings),
		Statistics: NewStatistics(&statistics), Result: r.Result.AppendJSON(nil),
	}
}

// Compare adds what [score.Rescored.Check] found; no difference means that the
// stored result is equal.
func (s *Score) Compare(found []score.Difference) {
	s.Equal = new(len(found) == 0)
	for _, d := range found {
		s.Differences = append(s.Differences, Difference(d))
	}
}
