package reward

import (
	"slices"

	"github.com/proctor-run/proctor/value"
)

// Attempts counts the trials of one task: N of them, C of which solved it.
type Attempts struct{ N, C int }

// PassAtK is the chance that at least one of K attempts solves a task, averaged
// over the tasks of a group.
type PassAtK struct {
	K     int
	Value float64
}

// Solved says whether a trial counts as a success for pass@k: 1 for exactly one
// reward that equals 1; 0 for one that equals 0, and for no rewards at all. For all
// else ok is false, and the trial's whole group has no pass@k. (Reward semantics,
// section 10.)
func Solved(r *Rewards) (solved int, ok bool) {
	if r == nil {
		return 0, true
	}
	if r.Len() != 1 {
		return 0, false
	}
	for _, x := range r.All() {
		for want := range 2 {
			if c, ordered := value.Compare(x, value.NewInt(int64(want))); ordered && c == 0 {
				return want, true
			}
		}
	}
	return 0, false
}

// KValues returns the numbers of attempts for which pass@k is given when no task
// has fewer than m trials: powers of two from 2 and multiples of five, up to m.
func KValues(m int) []int {
	var ks []int
	for k := 2; k <= m; k *= 2 {
		ks = append(ks, k)
	}
	for k := 5; k <= m; k += 5 {
		ks = append(ks, k)
	}
	slices.Sort(ks)
	return ks
}

// PassAtK returns the unbiased estimate 1 - C(N-C, k)/C(N, k) for one task, with
// the rounding of a product taken from left to right.
func (a Attempts) PassAtK(k int) float64 {
	return a.estimates([]int{k})[0]
}

// estimates returns the estimate for each of the ascending ks. All products are
// beginnings of one.
func (a Attempts) estimates(ks []int) []float64 {
	out := make([]float64, len(ks))
	p, i := 1.0, 0
	for at, k := range ks {
		if a.N-a.C < k {
			out[at] = 1
			continue
		}
		for ; i < k; i++ {
			p = float64(p * (float64(a.N-a.C-i) / float64(a.N-i)))
		}
		out[at] = 1 - p
	}
	return out
}

// PassAtKOf returns the pass@k of a group whose tasks, in the order of their first
// trials, were tried as counted. It is empty when a task has fewer than two trials
// or there are no tasks.
func PassAtKOf(tasks []Attempts) []PassAtK {
	if len(tasks) == 0 {
		return nil
	}
	m := tasks[0].N
	for _, a := range tasks {
		m = min(m, a.N)
	}
	ks := KValues(m)
	sums := make([]value.Summation, len(ks))
	for _, a := range tasks {
		for i, p := range a.estimates(ks) {
			_ = sums[i].Add(value.Float(p)) // floats do not fail
		}
	}
	out := make([]PassAtK, len(ks))
	for i, k := range ks {
		total, _ := sums[i].Total().(value.Float)
		out[i] = PassAtK{K: k, Value: float64(total) / float64(len(tasks))}
	}
	return out
}
