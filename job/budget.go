package job

import (
	"fmt"
	"slices"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// newMeter makes the meter of a job. What earlier runs spent counts for its budget; a
// warning says of how many attempts that is not known.
func (r *Runner) newMeter(p *Prepared) (m *llm.Meter, warnings []string) {
	m = llm.NewMeter(llm.OfJob, r.Budget, r.Trials.Meter)
	e := earlier{usd: r.Budget.USD > 0}
	for _, rec := range p.Existing {
		if r.passesCalls(rec) {
			e.count(rec.Usage)
		}
	}
	if r.Budget == (llm.Budget{}) {
		m.Add(e.spent())
		return m, nil
	}
	if r.onlyCallsModels(p.Config.Agents) {
		e = e.orAttempts(p.Config.Dir())
	}
	m.Add(e.spent())
	if e.unknown > 0 {
		warnings = append(warnings, fmt.Sprintf("what %s used is not known, and not counted for the budget of the job", console.Count(e.unknown, "earlier attempt")))
	}
	return m, warnings
}

// callsModel reports whether an agent calls models itself.
func (r *Runner) callsModel(name string) bool {
	e, ok := r.Trials.Agents.Find(name)
	return ok && e.CallsModel
}

// passesCalls reports whether the calls of models of a trial's agent go through this
// program, so that they are counted.
func (r *Runner) passesCalls(rec jobdir.Record) bool {
	cfg := jobdir.AgentConfig{Name: &rec.AgentName}
	if rec.ModelName != "" {
		cfg.ModelName = &rec.ModelName
	}
	return trial.CallsModel(r.Trials.Agents, cfg, r.Trials.Gateway)
}

func (r *Runner) onlyCallsModels(agents []jobdir.AgentConfig) bool {
	return !slices.ContainsFunc(agents, func(a jobdir.AgentConfig) bool { return !trial.CallsModel(r.Trials.Agents, a, r.Trials.Gateway) })
}

// earlier is what the earlier runs of a job used.
type earlier struct {
	usd   bool // the budget is in dollars
	total jobdir.Usage
	// n attempts are counted; of unknown ones what counts for the budget is not known.
	n, unknown int
}

func (e *earlier) count(u jobdir.Usage) {
	e.n++
	u = plausible(u)
	e.total.Add(u)
	if u.NInputTokens == nil || u.NOutputTokens == nil || e.usd && u.CostUSD == nil {
		e.unknown++
	}
}

// plausible leaves out of what a file says numbers that cannot be.
func plausible(u jobdir.Usage) jobdir.Usage {
	for _, n := range []**value.Int{&u.NInputTokens, &u.NCacheTokens, &u.NOutputTokens} {
		if *n != nil && (*n).Big().Sign() < 0 {
			*n = nil
		}
	}
	if c := u.CostUSD; c != nil && !(*c >= 0 && *c <= maxUSD) { // also nan
		u.CostUSD = nil
	}
	return u
}

// orAttempts is what the journal of a job directory knows of all attempts, also those whose
// results do not count, unless it knows less than e. What is wrong with a journal others
// tell.
func (e earlier) orAttempts(dir string) earlier {
	state, err := journal.LoadState(dir)
	if err != nil {
		return e
	}
	all := earlier{usd: e.usd}
	for _, t := range state.Trials {
		for _, a := range t.Attempts {
			switch {
			case a.Finish != nil:
				all.count(a.Finish.Usage())
			case !a.Agent.IsZero():
				all.count(jobdir.Usage{})
			}
		}
	}
	if all.n < e.n {
		return e
	}
	return all
}

// spent is the total as a meter counts it.
func (e *earlier) spent() llm.Spent {
	s := llm.Spent{Prompt: tokens(e.total.NInputTokens), Cached: tokens(e.total.NCacheTokens), Completion: tokens(e.total.NOutputTokens)}
	if e.total.CostUSD != nil {
		s.USD = *e.total.CostUSD
	}
	return s
}

// The most that is counted, and the most that a trial may have cost: numbers beyond are
// none.
const (
	maxTokens = 1 << 60
	maxUSD    = 1 << 40
)

func tokens(n *value.Int) int64 {
	return value.Clamp(n, maxTokens)
}

// unfinished is how the job's budget kept trials from being run to their end; nil where it
// did not.
func (m *monitor) unfinished(records []jobdir.Record) *llm.BudgetError {
	refused := m.meter.Exceeded()
	if refused == nil {
		return nil
	}
	cancelled := func(r jobdir.Record) bool { return r.ExceptionType == exception.CancelledError }
	if m.live.Result().Stats.NPendingTrials == 0 && !slices.ContainsFunc(records, cancelled) {
		return nil
	}
	return refused
}
