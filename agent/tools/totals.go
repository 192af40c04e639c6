package tools

import (
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/value"
)

// totals are what all calls used.
type totals struct {
	answers                    int64
	prompt, cached, completion int64
	cost                       float64
	// uncounted and unpriced are answers without a usage, or without a cost.
	uncounted, unpriced int64
	// used is what counts against the budget: also an estimate, where that is all
	// there is.
	used  int64
	times []time.Duration
}

// maxTimes bounds how many durations are reported.
const maxTimes = 20_000

func (t *totals) took(d time.Duration) {
	if len(t.times) < maxTimes {
		t.times = append(t.times, d)
	}
}

// add counts an answer. prompt is an estimate of the call's tokens, for the budget
// alone.
func (t *totals) add(r *llm.Response, prompt int64) {
	t.answers++
	if u := r.Usage; u != nil {
		t.prompt += u.Prompt
		t.cached += u.Cached
		t.completion += u.Completion
		t.used += u.Prompt + u.Completion
	} else {
		t.uncounted++
		t.used += prompt + int64(len(r.Message.Text())+len(r.Message.Reasoning))/llm.BytesPerToken
	}
	if r.Cost != nil {
		t.cost += *r.Cost
	} else {
		t.unpriced++
	}
}

// counted and priced tell whether the totals are known.
func (t *totals) counted() bool { return t.answers > 0 && t.uncounted == 0 }
func (t *totals) priced() bool  { return t.answers > 0 && t.unpriced == 0 }

// result has the totals, and metadata. Without a call nothing is known of any.
func (t *totals) result() agent.Result {
	var r agent.Result
	if t.counted() {
		r.InputTokens, r.CacheTokens, r.OutputTokens = new(t.prompt), new(t.cached), new(t.completion)
	}
	if t.priced() {
		r.CostUSD = new(t.cost)
	}
	r.Metadata = value.NewObject(6)
	r.Metadata.Set("n_model_calls", value.NewInt(int64(len(t.times))))
	msec := make(value.List, len(t.times))
	for i, d := range t.times {
		msec[i] = value.Float(float64(d.Microseconds()) / 1000)
	}
	r.Metadata.Set("api_request_times_msec", msec)
	return r
}
