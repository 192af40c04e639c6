package jobcli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

// modelsText says what models were used for; empty where there were none.
func modelsText(m *score.ModelUse) string {
	if m.Trials == 0 {
		return ""
	}
	return tokensOf(m) + "; " + costOf(m)
}

func tokensOf(m *score.ModelUse) string {
	if m.Uncounted == m.Trials {
		return "tokens unknown"
	}
	count := func(n *value.Int) string {
		if n == nil {
			return "0"
		}
		return value.Repr(*n)
	}
	text := count(m.Usage.NInputTokens) + " tokens in"
	if m.Usage.NCacheTokens != nil {
		text += " (" + count(m.Usage.NCacheTokens) + " cached)"
	}
	return text + ", " + count(m.Usage.NOutputTokens) + " out" + unknownOf(m.Uncounted, m.Trials)
}

func costOf(m *score.ModelUse) string {
	if m.Unpriced == m.Trials {
		return "cost unknown"
	}
	parts := []string{llm.Dollars(*m.Usage.CostUSD) + unknownOf(m.Unpriced, m.Trials)}
	if x := m.PerTrial(); x != nil {
		parts = append(parts, llm.Dollars(*x)+" a trial")
	}
	if x := m.PerSolved(); x != nil {
		parts = append(parts, llm.Dollars(*x)+" a solved trial")
	}
	return strings.Join(parts, ", ")
}

// unknownOf says of how many trials a number is not known.
func unknownOf(n, all int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" and what %d of %s used, which is unknown", n, console.Count(all, "trial"))
}

// printOverBudget says how a budget ended a job, and what can be done.
func (p *Program) printOverBudget(f *Flags, cfg jobdir.Config, out *job.Summary) {
	_, _ = fmt.Fprintf(p.Stderr, "%s: stopped: %v: %s\n", p.Name, out.Budget, progressText(out.Progress))
	if text := modelsText(&out.Models); text != "" {
		_, _ = fmt.Fprintf(p.Stderr, "%s: models: %s\n", p.Name, text)
	}
	_, _ = fmt.Fprintf(p.Stderr, "%s: what was done is in %s; to resume it with a larger budget: %s %s\n",
		p.Name, console.Clean(cfg.Dir()), p.resumeCommand(f, cfg), budgetFlags(out.Budget))
	stopped := func(r jobdir.Record) bool { return r.ExceptionType == exception.BudgetExceededError }
	if slices.ContainsFunc(out.Records, stopped) {
		_, _ = fmt.Fprintf(p.Stderr, "%s: trials that a budget ended keep their scores; -f %s -f %s runs them again, too\n",
			p.Name, exception.CancelledError, exception.BudgetExceededError)
	}
}

// budgetFlags are the flags of a budget that is used up, with a place for the number.
func budgetFlags(e *llm.BudgetError) string {
	var names []string
	if e.Budget.USD > 0 {
		names = append(names, "--budget-usd USD")
	}
	if e.Budget.Tokens > 0 {
		names = append(names, "--budget-tokens N")
	}
	return strings.Join(names, " ")
}
