package reward

import (
	"math"
	"slices"

	"github.com/proctor-run/proctor/value"
)

// Stats lists, per reward name and value, the trials that got it, in order of
// first appearance: the reward_stats of a group (reward semantics, section 9).
//
// Values that are equal share one entry under the spelling that came first: 1 and
// 1.0 do. A nan equals nothing and has an entry of its own every time. The zero
// value is empty and ready. Adding costs the same however much is there.
type Stats struct {
	names []string
	index map[string]*valueStats
}

// A StatsEntry holds the trials that got a value.
type StatsEntry struct {
	Value  value.Number
	Trials []string
}

type valueStats struct {
	entries []StatsEntry
	index   map[numberKey]int // position of a value; never of a nan
}

// numberKey is the same for numbers that are equal.
type numberKey struct {
	small int64
	bits  uint64 // of a float that equals no int
	large string // digits of an int beyond int64
}

// keyOf returns the key of a number; nan has none.
func keyOf(x value.Number) (key numberKey, ok bool) {
	n, _ := x.(value.Int)
	if f, isFloat := x.(value.Float); isFloat {
		whole, err := value.Truncate(float64(f))
		if c, _ := value.Compare(whole, f); err != nil || c != 0 {
			return numberKey{bits: math.Float64bits(float64(f))}, !math.IsNaN(float64(f))
		}
		n = whole
	}
	if small, fits := n.Int64(); fits {
		return numberKey{small: small}, true
	}
	return numberKey{large: n.String()}, true
}

// Add records the rewards of a trial. A trial without any changes nothing.
func (s *Stats) Add(r *Rewards, trial string) {
	for name, x := range r.All() {
		s.add(name, x, trial)
	}
}

func (s *Stats) add(name string, x value.Number, trial string) {
	values := s.index[name]
	if values == nil {
		if s.index == nil {
			s.index = map[string]*valueStats{}
		}
		values = &valueStats{index: map[numberKey]int{}}
		s.index[name] = values
		s.names = append(s.names, name)
	}
	if key, ok := keyOf(x); ok {
		if i, known := values.index[key]; known {
			values.entries[i].Trials = append(values.entries[i].Trials, trial)
			return
		}
		values.index[key] = len(values.entries)
	}
	values.entries = append(values.entries, StatsEntry{Value: x, Trials: []string{trial}})
}

// Remove takes back the latest [Stats.Add] of a trial, as Harbor does before a
// retry. Entries stay when they become empty.
func (s *Stats) Remove(r *Rewards, trial string) {
	for name, x := range r.All() {
		if values := s.index[name]; values != nil {
			values.remove(x, trial)
		}
	}
}

func (v *valueStats) remove(x value.Number, trial string) {
	if key, ok := keyOf(x); ok {
		if i, known := v.index[key]; known {
			v.entries[i].remove(trial)
		}
		return
	}
	for i := len(v.entries) - 1; i >= 0; i-- {
		if _, ok := keyOf(v.entries[i].Value); !ok && v.entries[i].remove(trial) {
			return
		}
	}
}

// remove looks from the end, where a trial that is retried stands.
func (e *StatsEntry) remove(trial string) bool {
	for i := len(e.Trials) - 1; i >= 0; i-- {
		if e.Trials[i] == trial {
			e.Trials = slices.Delete(e.Trials, i, i+1)
			return true
		}
	}
	return false
}

// Names returns the reward names in order.
func (s *Stats) Names() []string { return slices.Clone(s.names) }

// Entries returns the values of a name in order. They must not be changed.
func (s *Stats) Entries(name string) []StatsEntry {
	values := s.index[name]
	if values == nil {
		return nil
	}
	return values.entries
}

// Object returns the statistics as result files hold them: names to values, in
// Python's text, to trials. The key nan may come more than once.
func (s *Stats) Object() *value.Object {
	out := value.NewObject(len(s.names))
	for _, name := range s.names {
		entries := s.index[name].entries
		values := value.NewObject(len(entries))
		for _, e := range entries {
			trials := make(value.List, len(e.Trials))
			for i, trial := range e.Trials {
				trials[i] = value.Str(trial)
			}
			values.Append(value.Repr(e.Value), trials)
		}
		out.Append(name, values)
	}
	return out
}
