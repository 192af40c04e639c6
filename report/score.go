package report

import (
	"encoding/json"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/score"
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
	// Result is what the trials give, as result.json has it.
	Result json.RawMessage `json:"result"`
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
	records := make([]jobdir.Record, len(r.Records))
	for i := range r.Records {
		records[i] = r.Records[i].Record
	}
	statistics := score.NewStatistics(records, r.Result.NTotalTrials)
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
