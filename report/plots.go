package report

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/proctor-run/proctor/value"
)

// Histogram counts how often a reward had which value, in intervals of the same width from
// the lowest value to the highest.
type Histogram struct {
	Group  string `json:"group"`
	Reward string `json:"reward"`
	Low    Number `json:"low"`
	High   Number `json:"high"`
	Trials int    `json:"n_trials"`
	// Counts are of trials. Interval i begins at Low + i*(High-Low)/len(Counts), which is in
	// it; High is in the last.
	Counts []int `json:"counts"`
}

// Bounds are where interval i begins and ends.
func (h *Histogram) Bounds(i int) (from, to float64) {
	low, width := float64(h.Low), float64(h.High)-float64(h.Low)
	n := float64(len(h.Counts))
	return low + float64(i)/n*width, low + float64(i+1)/n*width
}

// intervals is how many a histogram has.
const intervals = 20

// Histograms shows how the rewards of the job's groups are distributed. A reward with one
// or two values has none: there the counts of outcomes say it all.
func (j *Job) Histograms() []Histogram {
	type key struct{ group, reward string }
	values := map[key][]float64{}
	for i := range j.records {
		r := &j.records[i]
		for name, v := range r.Rewards.All() {
			if x, err := value.Float64(v); err == nil && !math.IsNaN(x) && !math.IsInf(x, 0) {
				k := key{r.EvalsKey(), name}
				values[k] = append(values[k], x)
			}
		}
	}
	list := []Histogram{}
	for k, all := range values {
		if counts := countIn(all); counts != nil {
			list = append(list, Histogram{k.group, k.reward, Number(all[0]), Number(all[len(all)-1]), len(all), counts})
		}
	}
	slices.SortFunc(list, func(a, b Histogram) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Reward, b.Reward))
	})
	return list
}

// countIn sorts values and counts them; nil where less than three differ, or where they
// lie so far apart that no double is their distance.
func countIn(all []float64) []int {
	slices.Sort(all)
	low, width := all[0], all[len(all)-1]-all[0]
	if len(slices.Compact(slices.Clone(all))) < 3 || math.IsInf(width, 0) {
		return nil
	}
	counts := make([]int, intervals)
	for _, x := range all {
		counts[min(int((x-low)/width*intervals), intervals-1)]++
	}
	return counts
}

// Timeline shows what a job did when: how many trials were in which phase at once, on
// average over slots of time of the same length.
type Timeline struct {
	Started time.Time   `json:"started_at"`
	Seconds float64     `json:"slot_seconds"` // of one slot
	Phases  []PhaseLine `json:"phases"`       // those that there were, in their order
}

// PhaseLine has the number of trials in a phase, slot by slot, to four places.
type PhaseLine struct {
	Phase  PhaseKind `json:"phase"`
	Trials []float64 `json:"n_trials"`
}

// Most is the highest number of trials in all phases together in a slot.
func (t *Timeline) Most() float64 {
	sums := make([]float64, slots)
	for _, p := range t.Phases {
		for i, n := range p.Trials {
			sums[i] += n
		}
	}
	return slices.Max(sums)
}

// slots is how many a timeline has.
const slots = 60

// Timeline is nil without a phase that took time. Its times are in UTC.
func (j *Job) Timeline() *Timeline {
	from, to := int64(math.MaxInt64), int64(math.MinInt64)
	for _, r := range j.records {
		for _, p := range r.Phases {
			if p.Started < p.Finished {
				from, to = min(from, p.Started), max(to, p.Finished)
			}
		}
	}
	if from >= to {
		return nil
	}
	width := float64(to-from) / slots
	lines := map[PhaseKind][]float64{}
	for _, r := range j.records {
		for _, p := range r.Phases {
			kind := kindOf[p.Name]
			if lines[kind] == nil {
				lines[kind] = make([]float64, slots)
			}
			addSpan(lines[kind], float64(p.Started-from)/width, float64(p.Finished-from)/width)
		}
	}
	t := &Timeline{Started: time.UnixMicro(from).UTC(), Seconds: width / 1e6, Phases: []PhaseLine{}}
	for _, kind := range phaseKinds {
		if lines[kind] != nil {
			for i, n := range lines[kind] {
				lines[kind][i] = math.Round(n*1e4) / 1e4
			}
			t.Phases = append(t.Phases, PhaseLine{kind, lines[kind]})
		}
	}
	return t
}

// addSpan adds to each slot the share of it that lies between two places, in slots.
func addSpan(line []float64, from, to float64) {
	for i := max(int(from), 0); i < len(line) && float64(i) < to; i++ {
		line[i] += max(min(to, float64(i+1))-max(from, float64(i)), 0)
	}
}
