package score

import (
	"math"
	"slices"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/value"
)

// Estimate is the mean of a group's scores with how far it can be trusted.
// Unlike the group's metric it is a mean over tasks, each of which counts by
// the mean of its attempts: attempts at one task say little about others. The
// two agree where all tasks have equally many attempts.
type Estimate struct {
	Mean float64 // nan without tasks
	// [Low, High] is the interval in which the mean over all tasks of this kind
	// lies with the given confidence, by the Method. The ends are nan where
	// there is none.
	Low, High  float64
	Confidence float64
	Method     Method
	// StandardError of the mean, over tasks; nan with fewer than two.
	StandardError float64
	Tasks         int
	Trials        int
	// Scored trials have the reward; the others count as 0.
	Scored int
}

// Method is how an interval came about.
type Method string

const (
	// MethodStudent is Student's t over the means of the tasks. Where all
	// scores are between 0 and 1, so are the ends.
	MethodStudent Method = "student-t"
	// MethodBinomial is the exact interval of Clopper and Pearson, which takes
	// each task for a trial that succeeds or fails. It is for scores between 0
	// and 1 where the tasks do not differ: t would claim to be certain.
	MethodBinomial Method = "clopper-pearson"
	// MethodNone: with fewer than two tasks, tasks that do not differ in scores of
	// unknown range, or trials that were cancelled, whose 0 says nothing of the agent,
	// there is no interval.
	MethodNone Method = "none"
)

// EstimateMean estimates the mean of a group, by its key in evals; an empty key
// takes all records. reward names the reward to average; empty, it is the only
// one of a trial, or "reward" among several. The error is that of a trial which
// has several and none of this name.
func EstimateMean(records []jobdir.Record, group, reward string) (Estimate, error) {
	nan := math.NaN()
	e := Estimate{Mean: nan, Low: nan, High: nan, StandardError: nan, Confidence: 0.95, Method: MethodNone}
	tasks, err := scoresOf(records, group, reward)
	if err != nil {
		return e, err
	}
	cancelled := false
	for i := range records {
		if r := &records[i]; group == "" || r.EvalsKey() == group {
			cancelled = cancelled || r.Class() == jobdir.ClassCancelled
			e.Trials++
			if _, has := r.Rewards.Get(reward); has || reward == "" && r.Rewards.Len() > 0 {
				e.Scored++
			}
		}
	}
	e.Tasks = len(tasks)
	means := make([]float64, 0, len(tasks))
	fractions := true
	for _, s := range tasks {
		means = append(means, s.mean())
		fractions = fractions && s.fractions()
	}
	slices.Sort(means) // a fixed order of addition
	e.interval(means, fractions)
	if cancelled {
		e.Low, e.High, e.StandardError, e.Method = nan, nan, nan, MethodNone
	}
	return e, nil
}

// spread is up to where means of tasks are taken to be equal: they come from
// divisions that round.
const spread = 1e-9

// interval estimates from the sorted means of the tasks. fractions says that
// all scores are between 0 and 1.
func (e *Estimate) interval(means []float64, fractions bool) {
	low, high := 0.0, 0.0
	e.Mean, low, high = meanInterval(means, e.Confidence)
	n := len(means)
	if n < 2 || math.IsNaN(low) {
		return
	}
	if means[n-1]-means[0] > spread {
		e.Method = MethodStudent
		e.Low, e.High = low, high
		e.StandardError = (high - low) / 2 / studentQuantile((1+e.Confidence)/2, float64(n-1))
		if fractions {
			e.Low, e.High = max(low, 0), min(high, 1)
		}
		return
	}
	e.Mean, e.StandardError = means[0], 0
	if fractions {
		e.Method = MethodBinomial
		e.Low, e.High = binomialInterval(e.Mean*float64(n), float64(n), e.Confidence)
	}
}

// meanInterval is the mean of values and its interval by Student's t.
func meanInterval(values []float64, confidence float64) (mean, low, high float64) {
	mean, low, high = math.NaN(), math.NaN(), math.NaN()
	n := float64(len(values))
	if n == 0 {
		return mean, low, high
	}
	var sum value.Summation
	for _, x := range values {
		_ = sum.Add(value.Float(x)) // floats never fail
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
