package score

import (
	"slices"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// accumulator computes the metrics of one group while its trials come in.
// Adding a trial costs the same however many came before: per reward name it
// keeps one running tally, in which a trial without that name counts as the
// int 0. A name that turns up late gets the zeros of the trials before it.
type accumulator struct {
	n       int // trials so far
	names   []string
	tallies []tally        // by position of the name
	index   map[string]int // position of a name
	sorted  []int          // positions in order of the names
}

// tally aggregates the values of one reward name.
type tally struct {
	n        int
	sum      value.Summation
	sumErr   error
	max, min value.Number
}

func (t *tally) add(x value.Number) {
	if t.n == 0 {
		t.max, t.min = x, x
	} else {
		if c, ordered := value.Compare(x, t.max); ordered && c > 0 {
			t.max = x
		}
		if c, ordered := value.Compare(x, t.min); ordered && c < 0 {
			t.min = x
		}
	}
	t.n++
	if err := t.sum.Add(x); err != nil && t.sumErr == nil {
		t.sumErr = err
	}
}

// zeros is the tally of n ints 0: their sum is that of nothing.
func zeros(n int) tally {
	return tally{n: n, max: value.NewInt(0), min: value.NewInt(0)}
}

// value is the tally's aggregate under one of the built-in metrics.
func (t *tally) value(kind jobdir.MetricType) (value.Number, error) {
	switch kind {
	case jobdir.MetricMax:
		return t.max, nil
	case jobdir.MetricMin:
		return t.min, nil
	}
	if t.sumErr != nil {
		return nil, t.sumErr
	}
	total := t.sum.Total()
	if kind == jobdir.MetricSum {
		return total, nil
	}
	mean, err := value.Div(total, value.NewInt(int64(t.n)))
	if err != nil {
		return nil, err
	}
	return mean, nil
}

// add counts a trial's rewards; nil is a trial without.
func (a *accumulator) add(rewards *reward.Rewards) {
	if rewards != nil {
		for name, x := range rewards.All() {
			a.tallies[a.position(name)].add(x)
		}
	}
	a.n++
	for i := range a.tallies {
		if a.tallies[i].n < a.n {
			a.tallies[i].add(value.NewInt(0))
		}
	}
}

func (a *accumulator) position(name string) int {
	if i, ok := a.index[name]; ok {
		return i
	}
	if a.index == nil {
		a.index = map[string]int{}
	}
	i := len(a.names)
	a.index[name] = i
	a.names = append(a.names, name)
	a.tallies = append(a.tallies, zeros(a.n))
	at, _ := slices.BinarySearchFunc(a.sorted, name, func(j int, name string) int {
		return compareNames(a.names[j], name)
	})
	a.sorted = slices.Insert(a.sorted, at, i)
	return i
}

func compareNames(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// metric returns the group's value under a built-in metric: one entry named
// after the metric while there is at most one reward name, else one entry per
// reward name in order (reward semantics, section 8.1).
func (a *accumulator) metric(kind jobdir.MetricType) (*value.Object, error) {
	out := value.NewObject(max(len(a.names), 1))
	if len(a.names) == 0 {
		none := zeros(a.n)
		x, err := none.value(kind)
		if err != nil {
			return nil, err
		}
		out.Set(string(kind), x)
		return out, nil
	}
	for _, i := range a.sorted {
		x, err := a.tallies[i].value(kind)
		if err != nil {
			return nil, err
		}
		name := a.names[i]
		if len(a.names) == 1 {
			name = string(kind)
		}
		out.Set(name, x)
	}
	return out, nil
}

// snapshot is a state of an accumulator to come back to.
type snapshot struct {
	n       int
	tallies []tally
}

func (a *accumulator) snapshot() snapshot {
	return snapshot{n: a.n, tallies: slices.Clone(a.tallies)}
}

// restore goes back to an earlier state of the same accumulator.
func (a *accumulator) restore(s snapshot) {
	for _, name := range a.names[len(s.tallies):] {
		delete(a.index, name)
	}
	a.n = s.n
	a.names = a.names[:len(s.tallies)]
	a.tallies = append(a.tallies[:0], s.tallies...)
	a.sorted = slices.DeleteFunc(a.sorted, func(i int) bool { return i >= len(a.names) })
}
