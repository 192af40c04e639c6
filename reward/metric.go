package reward

import (
	"fmt"
	"maps"
	"slices"

	"github.com/proctor-run/proctor/value"
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
// [value.Sum], [value.Div], [value.Max] and [value.Min].
func Aggregate(metric Metric, trials []*Rewards) (*value.Object, error) {
	switch metric {
	case Mean, Sum, Max, Min:
	default:
		return nil, fmt.Errorf("aggregating rewards: metric %q is not one of mean, sum, max and min", metric)
	}
	tallies := map[string]*tally{}
	var t *tally // of the name last seen: most trials have the same one
	last := ""
	for i, r := range trials {
		for name, v := range r.Object().All() {
			if t == nil || name != last {
				if t = tallies[name]; t == nil {
					t = &tally{metric: metric}
					tallies[name] = t
				}
				last = name
			}
			t.add(i, v.(value.Number))
		}
	}
	if len(tallies) == 0 {
		tallies[""] = &tally{metric: metric}
	}
	out := value.NewObject(len(tallies))
	for _, name := range slices.Sorted(maps.Keys(tallies)) {
		x, err := tallies[name].result(len(trials))
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
	metric  Metric
	next    int // the first trial not counted
	skipped bool
	sum     value.Summation
	extreme value.Number // nil before the first value
}

// add counts a value of the trial with the given number.
func (t *tally) add(trial int, x value.Number) {
	if trial > t.next {
		t.skipTo(trial)
	}
	t.next = trial + 1
	t.value(x)
}

// skipTo counts the trials before the given one.
func (t *tally) skipTo(trial int) {
	if trial > t.next && !t.skipped {
		t.skipped = true
		t.value(value.NewInt(0))
	}
	t.next = trial
}

func (t *tally) value(x value.Number) {
	want := 1
	switch t.metric {
	case Max:
	case Min:
		want = -1
	default:
		_ = t.sum.Add(x) // the error stays in the sum
		return
	}
	if t.extreme == nil {
		t.extreme = x
	} else if c, ordered := value.Compare(x, t.extreme); ordered && c == want {
		t.extreme = x
	}
}

// result returns the metric over n trials.
func (t *tally) result(n int) (value.Number, error) {
	t.skipTo(n)
	switch {
	case t.metric == Max && n == 0:
		return value.Max(nil)
	case t.metric == Min && n == 0:
		return value.Min(nil)
	case t.metric == Max, t.metric == Min:
		return t.extreme, nil
	}
	if err := t.sum.Err(); err != nil {
		return nil, err
	}
	if t.metric == Sum {
		return t.sum.Total(), nil
	}
	return mean(t.sum.Total(), n)
}

func mean(total value.Number, n int) (value.Number, error) {
	q, err := value.Div(total, value.NewInt(int64(n)))
	if err != nil {
		return nil, err
	}
	return q, nil
}
