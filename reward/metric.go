package reward

import (
	"maps"
	"slices"

	"github.com/proctor-run/proctor/internal/pyvalue"
)

// Metric is the name of a way to make one number of many. Results show it as the
// key of the number.
type Metric string

// The metrics that configurations may name, besides uv-script.
const (
	Mean Metric = "mean" // the default; always a float
	Sum  Metric = "sum"  // an int while all values are
	Max  Metric = "max"  // one of the values
	Min  Metric = "min"  // one of the values
)

// Aggregate computes a metric over the rewards of a group's trials, nil where a
// trial has none. With at most one name among all trials the result is {metric:
// number}, else one number per name, sorted. A name that a trial lacks counts as
// the int 0. (Reward semantics, section 8.1.)
//
// The order of the trials matters to the last bit. Errors are those of
// [pyvalue.Sum], [pyvalue.Div], [pyvalue.Max] and [pyvalue.Min].
func Aggregate(metric Metric, trials []*Rewards) (*pyvalue.Object, error) {
	tallies := map[string]*tally{}
	for i, r := range trials {
		for name, x := range r.All() {
			t := tallies[name]
			if t == nil {
				t = &tally{}
				tallies[name] = t
			}
			t.add(i, x)
		}
	}
	if len(tallies) == 0 {
		tallies[""] = &tally{}
	}
	out := pyvalue.NewObject(len(tallies))
	for _, name := range slices.Sorted(maps.Keys(tallies)) {
		x, err := tallies[name].result(metric, len(trials))
		if err != nil {
			return nil, err
		}
		if len(tallies) == 1 {
			name = string(metric)
		}
		out.Set(name, x)
	}
	return out, nil
}

// tally aggregates the values of one name. Trials without the name count as the
// int 0, but are not visited: zeros do not change a sum, and only the first of
// them can change an extreme.
type tally struct {
	next     int // the first trial not counted
	skipped  bool
	sum      pyvalue.Summation
	max, min pyvalue.Number // nil before the first value
}

// add counts a value of the trial with the given number.
func (t *tally) add(trial int, x pyvalue.Number) {
	t.skipTo(trial)
	t.extremes(x)
	_ = t.sum.Add(x) // the error stays in the sum
	t.next = trial + 1
}

// skipTo counts the trials before the given one.
func (t *tally) skipTo(trial int) {
	if trial > t.next && !t.skipped {
		t.skipped = true
		t.extremes(pyvalue.NewInt(0))
	}
	t.next = trial
}

func (t *tally) extremes(x pyvalue.Number) {
	if t.max == nil {
		t.max, t.min = x, x
		return
	}
	if c, ordered := pyvalue.Compare(x, t.max); ordered && c > 0 {
		t.max = x
	}
	if c, ordered := pyvalue.Compare(x, t.min); ordered && c < 0 {
		t.min = x
	}
}

// result returns the metric over n trials.
func (t *tally) result(metric Metric, n int) (pyvalue.Number, error) {
	t.skipTo(n)
	switch metric {
	case Max:
		if t.max == nil {
			return pyvalue.Max(nil)
		}
		return t.max, nil
	case Min:
		if t.min == nil {
			return pyvalue.Min(nil)
		}
		return t.min, nil
	}
	if err := t.sum.Err(); err != nil {
		return nil, err
	}
	if metric == Sum {
		return t.sum.Total(), nil
	}
	return mean(t.sum.Total(), n)
}

func mean(total pyvalue.Number, n int) (pyvalue.Number, error) {
	q, err := pyvalue.Div(total, pyvalue.NewInt(int64(n)))
	if err != nil {
		return nil, err
	}
	return q, nil
}
