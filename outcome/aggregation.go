package outcome

import (
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/value"
)

// Aggregation is how the scores of the attempts at a task become one.
type Aggregation string

// The aggregations (outcome mapping, section 9).
const (
	MeanOfAttempts Aggregation = "mean" // the default
	BestOfK        Aggregation = "best-of-k"
)

// ParseAggregation reads the name of an aggregation, in any case and with white
// space around. The empty text is no name.
func ParseAggregation(text string) (Aggregation, error) {
	switch a := Aggregation(lower(value.Strip(text))); a {
	case MeanOfAttempts, BestOfK:
		return a, nil
	}
	return "", exception.New(exception.InvalidAggregationModeError, "unknown per-task aggregation mode "+value.Repr(value.Str(text))+"; expected one of ['best-of-k', 'mean']")
}

// Of aggregates scores in the order given. The zero Aggregation is the default.
// The name is checked first, then that there are scores.
func (a Aggregation) Of(scores []float64) (float64, error) {
	if a == "" {
		a = MeanOfAttempts
	}
	a, err := ParseAggregation(string(a))
	if err != nil {
		return 0, err
	}
	if len(scores) == 0 {
		return 0, exception.New(exception.InvalidAggregationModeError, "cannot aggregate an empty trial-score list (expected k>=1 trials)")
	}
	if a == BestOfK {
		return scores[best(scores)], nil
	}
	return mean(scores), nil
}

// best is the index of Python's max: the first that no later score exceeds.
func best(scores []float64) int {
	at := 0
	for i, x := range scores {
		if x > scores[at] {
			at = i
		}
	}
	return at
}

// TrialScore is the score of one trial's rewards, nil for none: the value of the
// name "reward" if it is a number, else the mean of all that are numbers, else 0.
// The error is that of an int beyond the range of doubles.
func TrialScore(rewards *value.Object) (float64, error) {
	if rewards == nil {
		return 0, nil
	}
	v, _ := rewards.Get("reward")
	if x, ok := number(v); ok {
		f, err := value.ToFloat(x)
		return f, err
	}
	var values []float64
	for _, v := range rewards.All() {
		x, ok := number(v)
		if !ok {
			continue
		}
		f, err := value.ToFloat(x)
		if err != nil {
			return 0, err
		}
		values = append(values, f)
	}
	if len(values) == 0 {
		return 0, nil
	}
	return mean(values), nil
}

// TaskScores are the scores of the attempts at one task, in order of arrival.
type TaskScores struct {
	Task   string
	Scores []float64
}

// GroupByTask collects scores by task, tasks in the order of their first trials.
// Every trial counts, errored ones with 0 and repeated ones again.
func GroupByTask(trials []TaskScore) []TaskScores {
	at := map[string]int{}
	var groups []TaskScores
	for _, t := range trials {
		i, known := at[t.Task]
		if !known {
			i = len(groups)
			at[t.Task] = i
			groups = append(groups, TaskScores{Task: t.Task})
		}
		groups[i].Scores = append(groups[i].Scores, t.Score)
	}
	return groups
}

// TaskScore is one score of a task.
type TaskScore struct {
	Task  string
	Score float64
}

// PerTask aggregates the scores of each task.
func (a Aggregation) PerTask(groups []TaskScores) ([]TaskScore, error) {
	out := make([]TaskScore, len(groups))
	for i, g := range groups {
		score, err := a.Of(g.Scores)
		if err != nil {
			return nil, err
		}
		out[i] = TaskScore{g.Task, score}
	}
	return out, nil
}
