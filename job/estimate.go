package job

import (
	"math"
	"slices"

	"github.com/proctor-run/proctor/internal/pyvalue"
)

// Estimate is the mean of a group's scores with how far it can be trusted.
// Unlike the group's metric it is a mean over tasks, each of which counts by
// the mean of its attempts: attempts at one task say little about others. The
// two agree where all tasks have equally many attempts.
type Estimate struct {
	Mean float64 // nan without tasks
	// [Low, High] is the interval in which the mean over all tasks of this kind
	// lies with the given confidence, by Student's t. The ends are nan with
	// fewer than two tasks.
	Low, High  float64
	Confidence float64
	Tasks      int
	Trials     int
	// Scored trials have rewards; the others count as 0.
	Scored int
	// Flakes tells how far attempts at the same task agree.
	Flakes Flakes
}

// EstimateMean estimates the mean of a group, by its key in evals; an empty key
// takes all records. reward names the reward to average; empty, it is the only
// one of a trial, or "reward" among several. The error is that of a trial which
// has several and none of this name.
func EstimateMean(records []Record, group, reward string) (Estimate, error) {
	e := Estimate{Mean: math.NaN(), Low: math.NaN(), High: math.NaN(), Confidence: 0.95}
	tasks, err := scoresOf(records, group, reward)
	if err != nil {
		return e, err
	}
	for i := range records {
		if r := &records[i]; group == "" || r.EvalsKey() == group {
			e.Trials++
			if r.Rewards.Len() > 0 {
				e.Scored++
			}
		}
	}
	e.Tasks, e.Flakes = len(tasks), flakes(tasks)
	means := make([]float64, 0, len(tasks))
	for _, s := range tasks {
		means = append(means, s.mean())
	}
	slices.Sort(means) // a fixed order of addition
	e.Mean, e.Low, e.High = meanInterval(means, e.Confidence)
	return e, nil
}

// meanInterval is the mean of values and its interval by Student's t.
func meanInterval(values []float64, confidence float64) (mean, low, high float64) {
	mean, low, high = math.NaN(), math.NaN(), math.NaN()
	n := float64(len(values))
	if n == 0 {
		return mean, low, high
	}
	var sum pyvalue.Summation
	for _, x := range values {
		_ = sum.Add(pyvalue.Float(x)) // floats never fail
	}
	mean = total(&sum) / n
	if n < 2 {
		return mean, low, high
	}
	squares := 0.0
	for _, x := range values {
		squares += float64((x - mean) * (x - mean))
	}
	half := studentQuantile((1+confidence)/2, n-1) * math.Sqrt(squares/(n-1)/n)
	return mean, mean - half, mean + half
}
