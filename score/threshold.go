package score

import (
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/value"
)

// Shortfall is a metric that did not reach a threshold.
type Shortfall struct {
	Group  string // the key in evals, see [jobdir.Record.EvalsKey]
	Metric string // its name, such as "mean"
	Value  value.Number
}

// BelowThreshold lists the metrics of all groups that did not reach the
// threshold, in the order of the result. A metric that is not a number (NaN) has
// not reached anything; one that is no number at all, such as null, is not
// compared.
func BelowThreshold(stats *jobdir.Stats, threshold float64) []Shortfall {
	var missed []Shortfall
	for group, e := range stats.Evals.All() {
		for _, m := range e.Metrics {
			for name, v := range m.All() {
				x, ok := v.(value.Number)
				if !ok {
					continue
				}
				if c, ordered := value.Compare(x, value.Float(threshold)); !ordered || c < 0 {
					missed = append(missed, Shortfall{Group: group, Metric: name, Value: x})
				}
			}
		}
	}
	return missed
}

// Coverage is the fraction of trials that have a reward, 0 to 1. It is 1 where
// there are no trials.
func Coverage(withReward, total int) float64 {
	if total <= 0 {
		return 1
	}
	return float64(withReward) / float64(total)
}
