package score

import (
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
)

// ModelUse is what the models of trials were used for.
type ModelUse struct {
	// Trials are those that used models, Solved those of them that have one reward of 1.
	Trials, Solved int
	// Usage is what is known of them.
	Usage jobdir.Usage
	// Uncounted are trials whose tokens are not known, Unpriced those whose cost is not.
	Uncounted, Unpriced int
}

// NewModelUse adds up trials that ended. Those that tell nothing count where callsModel
// says of their agent that it uses models.
func NewModelUse(records []jobdir.Record, callsModel func(agent string) bool) ModelUse {
	var m ModelUse
	for i := range records {
		r := &records[i]
		if r.Usage == (jobdir.Usage{}) && !callsModel(r.AgentName) {
			continue
		}
		m.Trials++
		m.Usage.Add(r.Usage)
		if n, ok := reward.Solved(r.Rewards); ok {
			m.Solved += n
		}
		if r.Usage.NInputTokens == nil || r.Usage.NOutputTokens == nil {
			m.Uncounted++
		}
		if r.Usage.CostUSD == nil {
			m.Unpriced++
		}
	}
	return m
}

// PerTrial is the mean cost of a trial, and PerSolved what all of them cost for each that
// was solved. They are nil where there is none, and where not every cost is known.
func (m *ModelUse) PerTrial() *float64 { return m.per(m.Trials) }

// PerSolved is described at PerTrial.
func (m *ModelUse) PerSolved() *float64 { return m.per(m.Solved) }

func (m *ModelUse) per(n int) *float64 {
	if n == 0 || m.Unpriced > 0 || m.Usage.CostUSD == nil {
		return nil
	}
	return new(*m.Usage.CostUSD / float64(n))
}
