package jobdir

import (
	"cmp"
	"math/big"

	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// Record is what aggregation needs to know about one finished trial: a small
// value where a result is a document.
type Record struct {
	TrialName    string
	TaskName     string
	TaskChecksum string
	AgentName    string
	ModelName    string // without provider; "" if there is none
	Source       string // dataset name; "" if there is none
	// Rewards is nil without verifier result, and where the verifier wrote
	// null: aggregation treats both the same.
	Rewards       *reward.Rewards
	ExceptionType string // "" if there was no exception
	// StepExceptionType is that of the first step with an exception. Harbor's numbers take
	// no notice of it: the trial itself has none then, as a rule.
	StepExceptionType string
	Usage             Usage
}

// Exception is the type of the trial's exception, or else of that of its first step with
// one; "" for none.
func (r *Record) Exception() string { return cmp.Or(r.ExceptionType, r.StepExceptionType) }

// Usage is what trials consumed. A nil field was not reported by any of them.
type Usage struct {
	NInputTokens  *value.Int
	NCacheTokens  *value.Int
	NOutputTokens *value.Int
	CostUSD       *float64
}

// AdHoc is the dataset name of trials whose task belongs to no dataset.
const AdHoc = "adhoc"

// Dataset is the dataset name under which the trial is counted.
func (r Record) Dataset() string {
	if r.Source == "" {
		return AdHoc
	}
	return r.Source
}

// EvalsKey names the group the trial is counted in: agent, model unless empty,
// and dataset, joined with "__" (Harbor job format, section 5.3). Different
// triples can share a key; they are one group then.
func (r Record) EvalsKey() string {
	if r.ModelName == "" {
		return r.AgentName + KeySeparator + r.Dataset()
	}
	return r.AgentName + KeySeparator + r.ModelName + KeySeparator + r.Dataset()
}

const KeySeparator = "__"

// RecordOf extracts the record of a result.
func RecordOf(r *TrialResult) Record {
	rec := Record{
		TrialName:    r.TrialName,
		TaskName:     r.TaskName,
		TaskChecksum: r.TaskChecksum,
		AgentName:    r.AgentInfo.Name,
		Usage:        usageOf(r),
	}
	if r.AgentInfo.ModelInfo != nil {
		rec.ModelName = r.AgentInfo.ModelInfo.Name
	}
	if r.Source != nil {
		rec.Source = *r.Source
	}
	if r.VerifierResult != nil {
		rec.Rewards = r.VerifierResult.Rewards
	}
	if r.ExceptionInfo != nil {
		rec.ExceptionType = r.ExceptionInfo.Type
	}
	if step := r.failedStep(); step != nil {
		rec.StepExceptionType = step.ExceptionInfo.Type
	}
	return rec
}

// usageOf takes the trial's own agent result, or without one the sum of its
// steps'.
func usageOf(r *TrialResult) Usage {
	if a := r.AgentResult; a != nil {
		return Usage{a.NInputTokens, a.NCacheTokens, a.NOutputTokens, a.CostUSD}
	}
	var u Usage
	for _, step := range r.StepResults {
		if a := step.AgentResult; a != nil {
			u.Add(Usage{a.NInputTokens, a.NCacheTokens, a.NOutputTokens, a.CostUSD})
		}
	}
	return u
}

func (u *Usage) Add(v Usage) {
	u.NInputTokens = addInt(u.NInputTokens, v.NInputTokens)
	u.NCacheTokens = addInt(u.NCacheTokens, v.NCacheTokens)
	u.NOutputTokens = addInt(u.NOutputTokens, v.NOutputTokens)
	if v.CostUSD != nil {
		total := *v.CostUSD
		if u.CostUSD != nil {
			total = *u.CostUSD + total
		}
		total += 0 // a sum that starts from zero is never negative zero
		u.CostUSD = &total
	}
}

func addInt(total, n *value.Int) *value.Int {
	if n == nil {
		return total
	}
	sum := *n
	if total != nil {
		sum = total.Add(sum)
	}
	return &sum
}

// sub takes back what add added. A total never falls below zero and never
// becomes unreported again.
func (u *Usage) Sub(v Usage) {
	u.NInputTokens = subInt(u.NInputTokens, v.NInputTokens)
	u.NCacheTokens = subInt(u.NCacheTokens, v.NCacheTokens)
	u.NOutputTokens = subInt(u.NOutputTokens, v.NOutputTokens)
	if u.CostUSD != nil && v.CostUSD != nil {
		rest := max(*u.CostUSD-*v.CostUSD, 0)
		u.CostUSD = &rest
	}
}

func subInt(total, n *value.Int) *value.Int {
	if total == nil || n == nil {
		return total
	}
	diff := new(big.Int).Sub(total.Big(), n.Big())
	if diff.Sign() < 0 {
		diff.SetInt64(0)
	}
	rest := value.NewBigInt(diff)
	return &rest
}
