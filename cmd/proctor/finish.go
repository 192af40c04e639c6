package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"

	"github.com/proctor-run/proctor/dataset"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

// prepareOptions are what preparing a job takes from the outside world.
func prepareOptions(ctx context.Context, env *Env) job.PrepareOptions {
	return job.PrepareOptions{
		Now: env.Now().Local(), Host: env.Lookup, Home: env.Getenv("HOME"),
		Random: rand.IntN, Invocation: env.Args,
		Fetch: fetchTasks(ctx, env),
	}
}

// prepareError makes what is wrong with the tasks or the job directory an
// error of usage: nothing was run.
func prepareError(err error) error {
	if exitCode(err) == exitInterrupted {
		return err
	}
	if errors.Is(err, job.ErrNoTasks) {
		return withHint(usageErrorf("%w", err), "name a task directory or a directory of tasks with -p")
	}
	if changed, ok := errors.AsType[*jobdir.ChangedError](err); ok {
		return changedError(changed)
	}
	if missing, ok := errors.AsType[*dataset.MissingError](err); ok {
		if hint := didYouMean(missing.Near); hint != "" {
			return withHint(usageErrorf("%w", err), "%s", hint)
		}
	}
	return usageErrorf("%w", err)
}

// changedError says what can be done about a job that was begun otherwise.
func changedError(err *jobdir.ChangedError) error {
	if err.Harmless() {
		return withHint(usageErrorf("%w", err), "--accept-harmless resumes it; --job-name starts another job")
	}
	return withHint(usageErrorf("%w", err), "put back what changes results, or start another job with --job-name")
}

// finishRun prints the result and turns it into an exit code.
//
//nolint:contextcheck // an interrupt ends the run, not the report of it
func finishRun(env *Env, f *runFlags, p *job.Prepared, out *job.Summary) error {
	dir := p.Config.Dir()
	if f.junit.file != "" {
		// Also of a run that was interrupted: what is pending is skipped.
		if err := exportJUnit(context.Background(), env, &f.junit, dir); err != nil {
			return err
		}
	}
	if out.Interrupted {
		if !f.json {
			_, _ = fmt.Fprintf(env.Stderr, "proctor: interrupted: %s\nproctor: what was done is in %s\n", progressText(out.Progress), dir)
		}
		return errQuiet(exitInterrupted)
	}
	if !f.json {
		printSummary(env.Stdout, out)
		_, _ = fmt.Fprintf(env.Stdout, "Job Info\nTotal runtime: %s\nResults written to %s\n",
			runtimeText(env.Now().Sub(out.Result.StartedAt.In(env.Now().Location()))), filepath.Join(dir, "result.json"))
	}
	if f.outcomeLine && !f.json {
		line, err := outcome.Of(out.Result.AppendJSON(nil)).Line()
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintln(env.Stdout, line)
	}
	if err := thresholds(f, out); err != nil {
		return err
	}
	if out.Result.Stats.NErroredTrials > 0 && !f.harborExitCodes {
		return errQuiet(exitTrialErrors)
	}
	return nil
}

// thresholds checks what the user asked for: every metric of every group, and
// the share of trials with rewards.
func thresholds(f *runFlags, out *job.Summary) error {
	var missed []error
	if f.failUnder != nil {
		for _, m := range score.BelowThreshold(&out.Result.Stats, *f.failUnder) {
			missed = append(missed, fmt.Errorf("%s of %s is %s, below --fail-under %g", clean(m.Metric), clean(m.Group), value.Repr(m.Value), *f.failUnder))
		}
	}
	if f.failUnderCoverage != nil {
		p := out.Progress
		if coverage := score.Coverage(p.Ended.WithReward, p.Total); coverage < *f.failUnderCoverage {
			missed = append(missed, fmt.Errorf("coverage %.3f (%d of %d trials have a reward) is below --fail-under-coverage %g",
				coverage, p.Ended.WithReward, p.Total, *f.failUnderCoverage))
		}
	}
	if len(missed) == 0 {
		return nil
	}
	return &exitcode.Error{Code: exitThreshold, Err: errors.Join(missed...)}
}
