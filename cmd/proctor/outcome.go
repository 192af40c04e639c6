package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/internal/flags"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/report"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

// outcomeFlags are the flags of outcome.
type outcomeFlags struct {
	explain, json bool
	expect        *int // finished trials; nil for any number
	policy        jobcli.PolicyFlags
}

func newOutcome(env *Env) *cobra.Command {
	f := &outcomeFlags{}
	cmd := &cobra.Command{
		Use:   "outcome JOBDIR|result.json",
		Short: "Print the result line that consumers of a job look for",
		Long: `outcome prints the line BASE_BENCHMARK_RESULT={...} for a job: status, score,
resolved, total and reason code, as they follow from the job's result.json. It
always prints a line, even if that file is missing or malformed; the exit code is
0 whenever a line was printed, but for what is asked for below.

--aggregate, --keep and --policy put a score under another policy into the line
beside Harbor's, as policy_score; of a result that cannot be used it is null. It
is made of the job's trials, so it needs the job directory. Harbor's score stays
what it is unless --score-by-policy asks for the policy's in its place. Where the
trials have no score under the policy, the exit code says so, and with
--score-by-policy there is no line.

With --explain it also says how each field came about, which trial decided it,
and what a consumer that follows the rules makes of the line. --json prints the
same as one JSON object in the place of the line, which is its field "line".

A job that is not finished has a line like any other, and a warning on standard
error. With --expect-trials a job of which another number of trials has finished
gets the line of a failed one, harbor_result_partial, and the exit code is 4.`,
		Example: `  proctor outcome jobs/2026-06-09__10-00-00
  proctor outcome --explain result.json
  proctor outcome --aggregate best-of-k --score-by-policy jobs/2026-06-09__10-00-00`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return withHint(usageErrorf("accepts one job directory or result file, got %d", len(args)), "proctor %s", cmd.Use)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd.Context(), env)
			defer stop()
			return f.print(ctx, env, args[0])
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.BoolVar(&f.explain, "explain", false, "say how each field came about")
	fs.BoolVar(&f.json, "json", false, "print one JSON object with the line and how it came about, nothing else")
	flags.Optional(fs, &f.expect, flags.Int, "expect-trials", "", "exit with 4 when another `number` of trials has finished")
	f.policy.Define(fs, policyFile)
	f.policy.DefineInstead(fs)
	return cmd
}

// resultFile is the result file of a job directory; any other path is a result
// file itself.
func resultFile(path string) string {
	if isDirectory(path) {
		return filepath.Join(path, scan.ResultFile)
	}
	return path
}

// check reads the policy of the flags, and refuses one that path cannot be scored under.
func (f *outcomeFlags) check(path string) error {
	if err := f.policy.Read(); err != nil {
		return err
	}
	switch {
	case f.explain && f.json:
		return usageErrorf("--json has what --explain says: they do not go together")
	case f.expect != nil && *f.expect < 0:
		return usageErrorf("--expect-trials %d: want a number of trials", *f.expect)
	}
	switch asked := f.policy.Asked() != nil; {
	case !asked && f.policy.Instead:
		return withHint(usageErrorf("--score-by-policy: there is no policy"), "--aggregate, --keep and --policy say one")
	case asked && !isDirectory(path):
		return usageErrorf("%q is not a job directory, whose trials a policy scores", path)
	}
	return nil
}

func (f *outcomeFlags) print(ctx context.Context, env *Env, path string) error {
	if err := f.check(path); err != nil {
		return err
	}
	file := resultFile(path)
	x := report.ReadOutcome(file)
	policied, policyErr := f.score(ctx, env, path, x)
	if policyErr != nil && f.policy.Instead {
		return policyErr
	}
	countErr := f.checkCount(x, file)
	line, shown, err := f.line(x.Explanation, policied, countErr != nil)
	if err != nil {
		return fmt.Errorf("printing the outcome of %q: %w", file, err)
	}
	if err := f.printLine(env, x, policied, shown, line); err != nil {
		return err
	}
	if policyErr != nil {
		return policyErr
	}
	return countErr
}

// printLine prints the line in the form that was asked for, and warns of what it does not
// say of the job.
func (f *outcomeFlags) printLine(env *Env, x *report.Outcome, s *score.PolicyScore, shown outcome.Explanation, line string) error {
	warn := func(text string) { _, _ = fmt.Fprintf(env.Stderr, "proctor: warning: %s\n", clean(text)) }
	for _, why := range x.Unfinished {
		warn("the result line is that of an unfinished job: " + why)
	}
	if x.Err != nil && !f.explain {
		warn(x.Err.Error())
	}
	if f.json {
		d := x.Document(line, shown.Outcome)
		d.NExpected = f.expect
		if s != nil {
			d.PolicyScore = report.NewPolicyScore(s)
		}
		return encodeJSON(env.Stdout, d)
	}
	_, err := fmt.Fprintln(env.Stdout, line)
	if f.explain {
		explainOutcome(env.Stdout, x, s, shown, line)
	}
	return outputError(err)
}

// checkCount compares how many trials have finished with what was asked for.
func (f *outcomeFlags) checkCount(x *report.Outcome, file string) error {
	if f.expect == nil || x.Finished().Cmp(value.NewInt(int64(*f.expect))) == 0 {
		return nil
	}
	return &exitcode.Error{Code: exitThreshold, Err: fmt.Errorf("%s: %s of %s finished, expected %d (--expect-trials)",
		clean(file), x.Finished(), x.Counted, *f.expect)}
}

// score scores the job under the policy that was asked for; nil where none was, or the
// result cannot be used. Metrics have no say, so no script runs.
func (f *outcomeFlags) score(ctx context.Context, env *Env, dir string, x *report.Outcome) (*score.PolicyScore, error) {
	if f.policy.Asked() == nil || x.Outcome.Reason != "" {
		return nil, nil
	}
	r, err := rescore(ctx, dir, score.RescoreOptions{Metrics: []score.Metric{{Type: jobdir.MetricMean}}})
	if err != nil {
		return nil, err
	}
	printUnfinished(env.Stderr, r)
	return scoreUnder(env, f.policy.Asked(), r)
}

// line is the result line, and the explanation whose score it has. The line of a job of
// which another number of trials finished than was expected has no score.
func (f *outcomeFlags) line(x outcome.Explanation, s *score.PolicyScore, partial bool) (string, outcome.Explanation, error) {
	if partial {
		x = x.Partial()
	}
	if f.policy.Asked() == nil {
		line, err := x.Outcome.Line()
		return line, x, err
	}
	return jobcli.PolicyLine(x, s, f.policy.Instead)
}
