package jobcli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/internal/shellword"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

// finish prints the result and turns it into an exit code.
//
//nolint:contextcheck // an interrupt ends the run, not the report of it
func (p *Program) finish(f *Flags, prepared *job.Prepared, policy *score.Policy, out *job.Summary) error {
	dir := prepared.Config.Dir()
	var junitErr error // the job's own result does not depend on it
	if f.JUnit.File != "" {
		// Also of a run that was interrupted: what is pending is skipped.
		junitErr = f.JUnit.Export(context.Background(), p.Stdout, dir)
	}
	policied, policyErr := ScoreUnder(policy, out.Records)
	if !f.JSON {
		p.printEnd(f, prepared.Config, out, policied)
	}
	if err := p.resultLine(f, out, policy, policied); err != nil {
		return err
	}
	switch {
	case junitErr != nil:
		return junitErr
	case out.Budget != nil:
		return exitcode.Quiet(exitcode.Budget)
	case out.Interrupted:
		return exitcode.Quiet(exitcode.Interrupted)
	case policyErr != nil:
		return policyErr
	}
	return verdict(f, out)
}

// printEnd says how a job ended.
func (p *Program) printEnd(f *Flags, cfg jobdir.Config, out *job.Summary, policied *score.PolicyScore) {
	switch {
	case out.Budget != nil:
		p.printOverBudget(f, cfg, out)
	case out.Interrupted:
		_, _ = fmt.Fprintf(p.Stderr, "%s: interrupted: %s\n%s: what was done is in %s\n",
			p.Name, progressText(out.Progress), p.Name, console.Clean(cfg.Dir()))
		p.sayHowToResume(f, cfg)
	default:
		p.printResult(filepath.Join(cfg.Dir(), "result.json"), out, policied)
		p.sayHowToLook(f, cfg, out)
	}
}

// verdict is the exit code that a finished job comes to.
func verdict(f *Flags, out *job.Summary) error {
	if err := thresholds(f, out); err != nil {
		return err
	}
	if errored(out) && !f.HarborExitCodes {
		return exitcode.Quiet(exitcode.TrialErrors)
	}
	return nil
}

// errored reports that trials have errors, Harbor's counters or not: those do not count
// exceptions of steps.
func errored(out *job.Summary) bool {
	return out.Result.Stats.NErroredTrials > 0 || len(out.Statistics.Errors) > 0
}

// printResult prints a job's tables, its score under a policy if it has one, and where the
// file with its result is.
func (p *Program) printResult(file string, out *job.Summary, s *score.PolicyScore) {
	PrintSummary(p.Stdout, out)
	if s != nil {
		PrintPolicy(p.Stdout, s)
		_, _ = fmt.Fprintln(p.Stdout)
	}
	if text := modelsText(&out.Models); text != "" {
		_, _ = fmt.Fprintf(p.Stdout, "Models: %s\n\n", text)
	}
	p.printSuspicions(filepath.Dir(file))
	_, _ = fmt.Fprintf(p.Stdout, "Job Info\nTotal runtime: %s\nResults written to %s\n",
		console.Runtime(max(p.Now().Sub(out.Result.StartedAt.In(p.Now().Location())), 0)), file)
}

// printSuspicions says in one line that the verifications of a job have left some.
func (p *Program) printSuspicions(dir string) {
	state, err := journal.LoadState(dir)
	if err != nil {
		return // the journal that was just written: whoever reads it next says so
	}
	trials, suspicions := state.Suspicious()
	PrintSuspicions(p.Stdout, dir, trials, suspicions)
}

// PrintSuspicions says in one line how many things were conspicuous in the verifications
// of how many trials of the job in a directory, and nothing where none was.
func PrintSuspicions(w io.Writer, dir string, trials, suspicions int) {
	if trials > 0 {
		_, _ = fmt.Fprintf(w, "Suspicions: %d in the verification of %s ('proctor verify %s' names them)\n\n",
			suspicions, console.Count(trials, "trial"), console.Clean(shellword.Quote(dir)))
	}
}

// thresholds checks what the user asked for: every metric of every group, and
// the share of trials with rewards.
func thresholds(f *Flags, out *job.Summary) error {
	var missed []error
	if f.FailUnder != nil {
		for _, m := range score.BelowThreshold(&out.Result.Stats, *f.FailUnder) {
			missed = append(missed, fmt.Errorf("%s of %s is %s, below --fail-under %g", console.Clean(m.Metric), console.Clean(m.Group), value.Repr(m.Value), *f.FailUnder))
		}
	}
	if f.FailUnderCoverage != nil {
		p := out.Progress
		if coverage := score.Coverage(p.Ended.WithReward, p.Total); coverage < *f.FailUnderCoverage {
			missed = append(missed, fmt.Errorf("coverage %.3f (%d of %d trials have a reward) is below --fail-under-coverage %g",
				coverage, p.Ended.WithReward, p.Total, *f.FailUnderCoverage))
		}
	}
	if len(missed) == 0 {
		return nil
	}
	return &exitcode.Error{Code: exitcode.Threshold, Err: errors.Join(missed...)}
}
