package reward

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/proctor-run/proctor/value"
)

// Strategy is how the verifier results of a multi-step trial become one.
type Strategy string

// The strategies that task files may name; the empty one is [StrategyMean].
const (
	StrategyMean  Strategy = "mean"
	StrategyFinal Strategy = "final"
)

// A Result is what one verification said. A nil *Result means that there was none,
// which for multi-step trials differs from rewards that are null.
type Result struct{ Rewards *Rewards }

// Combine returns the verifier result of a trial from those of the steps that it
// started, nil where a step has none (reward semantics, section 11).
//
// [StrategyFinal] gives the last one. [StrategyMean] gives the mean per name over the
// steps that have a result, in which a missing name counts as 0 and null rewards as
// no names; always floats, sorted by name. Without any name it gives nil. An error
// is the OverflowError of ints that are too large.
func Combine(strategy Strategy, steps []*Result) (*Result, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	if strategy == StrategyFinal {
		return steps[len(steps)-1], nil
	}
	count := 0
	tallies := map[string]*tally{}
	for _, s := range steps {
		if s == nil {
			continue
		}
		for name, x := range s.Rewards.All() {
			if tallies[name] == nil {
				tallies[name] = &tally{metric: Mean}
			}
			tallies[name].add(count, x)
		}
		count++
	}
	if len(tallies) == 0 {
		return nil, nil
	}
	out := &Rewards{}
	for _, name := range slices.Sorted(maps.Keys(tallies)) {
		x, err := tallies[name].result(count)
		if err != nil {
			return nil, err
		}
		out.Set(name, x)
	}
	return &Result{Rewards: out}, nil
}

// A Threshold is the least value that a reward must have for a multi-step trial to
// go on.
type Threshold struct {
	Name  string
	Value float64
}

// MinReward is a step's min_reward, in order. A plain number in a task file is a
// threshold for [Name]. Nil means that none is set.
type MinReward []Threshold

// Failure returns the reason why the rewards are below a threshold, or "" if they
// are not. A missing name counts as minus infinity; a nan, on either side, is never
// below.
func (m MinReward) Failure(r *Rewards) string {
	for _, t := range m {
		actual, ok := r.Get(t.Name)
		if !ok {
			actual = value.Float(math.Inf(-1))
		}
		if c, ordered := value.Compare(actual, value.Float(t.Value)); ordered && c < 0 {
			return fmt.Sprintf("%s=%s below min_reward %s", t.Name, value.Repr(actual), value.FloatRepr(t.Value))
		}
	}
	return ""
}

// Stop reports whether a multi-step trial ends after a step: because the step had an
// exception and no verifier result, or because its rewards are below a threshold,
// whose reason it then returns. Thresholds do not count where verification is
// disabled.
func Stop(result *Result, exception bool, m MinReward, verificationDisabled bool) (stop bool, reason string) {
	if exception && result == nil {
		return true, ""
	}
	if verificationDisabled {
		return false, ""
	}
	var rewards *Rewards
	if result != nil {
		rewards = result.Rewards
	}
	reason = m.Failure(rewards)
	return reason != "", reason
}
