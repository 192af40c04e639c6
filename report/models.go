package report

import (
	"encoding/json"

	"github.com/proctor-run/proctor/score"
)

// Models is what the models of a job were used for: in the JSON of proctor run. Of
// Uncounted trials the tokens are not known, of Unpriced ones the cost is not; they are
// not in the sums. What has no value is null.
type Models struct {
	Trials    int             `json:"n_trials"`
	Solved    int             `json:"n_solved_trials"`
	Input     json.RawMessage `json:"n_input_tokens"`
	Cache     json.RawMessage `json:"n_cache_tokens"`
	Output    json.RawMessage `json:"n_output_tokens"`
	Cost      *float64        `json:"cost_usd"`
	PerTrial  *float64        `json:"cost_usd_per_trial"`
	PerSolved *float64        `json:"cost_usd_per_solved_trial"`
	Uncounted int             `json:"n_trials_without_tokens"`
	Unpriced  int             `json:"n_trials_without_cost"`
}

// NewModels gives it the form in which it is reported; nil for trials without models.
func NewModels(m *score.ModelUse) *Models {
	if m == nil || m.Trials == 0 {
		return nil
	}
	return &Models{
		Trials: m.Trials, Solved: m.Solved,
		Input: intJSON(m.Usage.NInputTokens), Cache: intJSON(m.Usage.NCacheTokens), Output: intJSON(m.Usage.NOutputTokens),
		Cost: finite(m.Usage.CostUSD), PerTrial: finite(m.PerTrial()), PerSolved: finite(m.PerSolved()),
		Uncounted: m.Uncounted, Unpriced: m.Unpriced,
	}
}
