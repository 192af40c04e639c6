package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/audit"
	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/internal/interrupt"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/report"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/score/script"
)

// scoreFlags are the flags of score.
type scoreFlags struct {
	check, write, json bool
	metrics            []string
	scripts            bool
	policy             jobcli.PolicyFlags
}

func newScore(env *Env) *cobra.Command {
	f := &scoreFlags{}
	cmd := &cobra.Command{
		Use:   "score JOBDIR...",
		Short: "Aggregate a job again from the results of its trials",
		Long: `score reads the results of a job's trials, aggregates them as Harbor does and
prints the metrics. Read-only unless --write or --run-scripts is given.

With --check it compares the job's stored result.json with what the trials give
and names each field that differs, with the trial where one does. Of numbers it
compares value and kind, not spelling. It also checks all that 'proctor verify'
does: that results, rewards and trials are those that were written and planned.
The exit code is 4 when there is a difference.

--aggregate, --keep and --policy add a second score beside Harbor's: the attempts
at a task become one score first, then the tasks that the policy keeps are
averaged. What is stored does not change.`,
		Example: `  proctor score jobs/2026-06-09__10-00-00
  proctor score --check jobs/*
  proctor score --metric max --json jobs/2026-06-09__10-00-00
  proctor score --aggregate best-of-k --keep drop-lowest-n --drop-lowest 2 jobs/2026-06-09__10-00-00`,
		Args: someJobs,
		RunE: func(cmd *cobra.Command, dirs []string) error {
			ctx, stop := interruptible(cmd.Context(), env)
			defer stop()
			if err := f.policy.Read(); err != nil {
				return err
			}
			return scoreAll(ctx, env, f, dirs)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.BoolVar(&f.check, "check", false, "compare with the stored result, and verify the job; exit with 4 when something differs")
	fs.BoolVar(&f.write, "write", false, "replace the stored result by what the trials give")
	fs.StringArrayVar(&f.metrics, "metric", nil, "use this `metric` (mean, sum, max, min) instead of the job's; repeatable")
	fs.BoolVar(&f.scripts, "run-scripts", false, "run the metric scripts that the job names, on this machine")
	f.policy.Define(fs, policyFile)
	fs.BoolVar(&f.json, "json", false, "print one JSON object per job, nothing else")
	return cmd
}

func someJobs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return withHint(usageErrorf("missing JOBDIR"), "proctor %s", cmd.Use)
	}
	return nil
}

// interruptible returns a context that ends at the first interrupt.
func interruptible(ctx context.Context, env *Env) (context.Context, func()) {
	return interrupt.Context(ctx, env.Signals)
}

// scoreAll scores each job. One that cannot be scored does not keep the others
// from it.
func scoreAll(ctx context.Context, env *Env, f *scoreFlags, dirs []string) error {
	if f.check && (f.write || len(f.metrics) > 0) {
		return usageErrorf("--check compares with the stored result: it goes neither with --write nor with --metric")
	}
	if f.check && f.policy.Asked() != nil {
		return usageErrorf("--check compares with the stored result, which knows no policy")
	}
	opts, err := rescoreOptions(ctx, env, f)
	if err != nil {
		return err
	}
	differ := false
	var failures []error
	for _, dir := range dirs {
		same, err := scoreOne(ctx, env, f, dir, opts, len(dirs) > 1)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			failures = append(failures, err)
		}
		differ = differ || !same
	}
	switch {
	case len(failures) > 0:
		return joinFailures(failures)
	case differ:
		return errQuiet(exitThreshold)
	}
	return nil
}

// joinFailures keeps the hint and the exit code of the first failure.
func joinFailures(failures []error) error {
	if len(failures) == 1 {
		return failures[0]
	}
	return &exitcode.Error{Code: exitCode(failures[0]), Err: errors.Join(failures...)}
}

func rescoreOptions(ctx context.Context, env *Env, f *scoreFlags) (score.RescoreOptions, error) {
	var opts score.RescoreOptions
	for _, name := range f.metrics {
		switch m := jobdir.MetricType(name); m {
		case jobdir.MetricMean, jobdir.MetricSum, jobdir.MetricMax, jobdir.MetricMin:
			opts.Metrics = append(opts.Metrics, score.Metric{Type: m})
		default:
			return opts, usageErrorf("--metric %q: it is one of mean, sum, max and min", name)
		}
	}
	opts.Scripts = script.Refuse
	if f.scripts {
		opts.Scripts = metricScripts(ctx, env)
	}
	return opts, nil
}

// metricScripts runs metric scripts with this program's variables.
func metricScripts(ctx context.Context, env *Env) score.ScriptMetric {
	return script.WithUV(ctx, env.Environ)
}

// rescore aggregates a directory again, and says why if it is no job's.
func rescore(ctx context.Context, dir string, opts score.RescoreOptions) (*score.Rescored, error) {
	r, err := score.Rescore(ctx, dir, opts)
	if errors.Is(err, fs.ErrNotExist) && !isDirectory(dir) {
		return nil, notJob(dir, err)
	}
	if errors.Is(err, script.ErrNotRun) {
		return nil, withHint(usageErrorf("%w", err), "--run-scripts runs it on this machine, --metric replaces it")
	}
	if err != nil {
		return nil, err
	}
	if isEmptyJob(r) {
		return nil, usageErrorf("%q is not a job directory: it holds neither a %s nor trials", dir, scan.ResultFile)
	}
	return r, nil
}

func notJob(dir string, err error) error {
	return usageErrorf("%q is not a job directory: %w", dir, err)
}

func isEmptyJob(r *score.Rescored) bool {
	return len(r.Records) == 0 && !isFile(filepath.Join(r.Dir, scan.ResultFile))
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// scoreOne scores one job and reports whether its stored result agrees.
func scoreOne(ctx context.Context, env *Env, f *scoreFlags, dir string, opts score.RescoreOptions, titled bool) (same bool, err error) {
	if f.write {
		s := program(env).Session(&jobcli.Flags{})
		defer func() { err = errors.Join(err, s.Close(ctx)) }()
		if err := s.Hold(dir); err != nil {
			return true, jobcli.ClaimError(err)
		}
	}
	r, err := rescore(ctx, dir, opts)
	if f.check && errors.Is(err, score.ErrTwice) {
		return false, printTampered(ctx, env, f, dir, opts)
	}
	if err != nil {
		return true, err
	}
	for _, text := range r.Warnings {
		_, _ = fmt.Fprintf(env.Stderr, "proctor: warning: %s: %s\n", clean(dir), clean(text))
	}
	if f.check {
		return checkOne(ctx, env, f, r, titled)
	}
	if f.write {
		if err := writeResult(env, f, r); err != nil {
			return true, err
		}
	}
	policied, err := scoreUnder(env, f.policy.Asked(), r)
	if err != nil {
		return true, err
	}
	if f.json {
		out := report.NewScore(r)
		if policied != nil {
			out.Policy = report.NewPolicyScore(policied)
		}
		return true, encodeJSON(env.Stdout, out)
	}
	if titled {
		_, _ = lipgloss.Fprintln(env.Stdout, console.Bold(clean(dir)))
	}
	records := r.Trials()
	jobcli.PrintSummary(env.Stdout, &job.Summary{Result: &r.Result, Records: records, Statistics: score.NewStatistics(records, r.Result.NTotalTrials)})
	if policied != nil {
		jobcli.PrintPolicy(env.Stdout, policied)
	}
	printUnfinished(env.Stdout, r)
	return true, nil
}

// checkOne holds one job's stored result against its trials, and all its files against
// each other. It reports whether they agree.
func checkOne(ctx context.Context, env *Env, f *scoreFlags, r *score.Rescored, titled bool) (same bool, err error) {
	found, err := audit.Check(ctx, r.Dir, audit.Options{Rescored: r})
	if err != nil {
		return true, err
	}
	same = len(found.Findings) == 0
	if f.json {
		out := report.NewScore(r)
		out.Compare(found.Differences)
		out.Findings = report.NewFindings(found.Findings)
		return same, encodeJSON(env.Stdout, out)
	}
	if titled {
		_, _ = lipgloss.Fprintln(env.Stdout, console.Bold(clean(r.Dir)))
	}
	printDifferences(env.Stdout, r, found.Differences)
	printFindings(env.Stdout, slices.DeleteFunc(found.Findings, func(f audit.Finding) bool { return f.Kind == audit.Sum }))
	return same, nil
}

// printTampered says of a job that cannot be aggregated what is wrong with it.
func printTampered(ctx context.Context, env *Env, f *scoreFlags, dir string, opts score.RescoreOptions) error {
	found, err := audit.Check(ctx, dir, audit.Options{Score: opts})
	if err != nil {
		return err
	}
	if f.json {
		return encodeJSON(env.Stdout, report.NewVerification(found))
	}
	printFindings(env.Stdout, found.Findings)
	return nil
}

// scoreUnder scores a job under a policy, nil for none, and says when it is not the one
// that was fixed before the job ran.
func scoreUnder(env *Env, p *score.Policy, r *score.Rescored) (*score.PolicyScore, error) {
	program(env).WarnFixed(r.Dir, p)
	s, err := jobcli.ScoreUnder(p, r.Trials())
	if err != nil {
		return nil, usageErrorf("%s: %w", r.Dir, err)
	}
	return s, nil
}

// policyFile is what --policy is for where the job has run.
const policyFile = "`file` with a policy as JSON, such as the policy.json of a job"

// writeResult replaces the job's result, if it changes.
func writeResult(env *Env, f *scoreFlags, r *score.Rescored) error {
	path := filepath.Join(r.Dir, scan.ResultFile)
	old, err := jobdir.ReadJobFile(r.Dir, scan.ResultFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading job result: %w", err)
	}
	if err == nil && r.Result.FinishedAt == nil {
		return withHint(usageErrorf("%s: the job has not finished, its result is not final", path),
			"finish it with 'proctor run' on the same directory, or leave out --write")
	}
	data := r.Result.AppendJSON(nil)
	what := "unchanged"
	if !bytes.Equal(old, data) {
		what = "written"
		if err := atomicfile.Write(path, data, resultMode(path)); err != nil {
			return fmt.Errorf("writing job result: %w", err)
		}
		entry := journal.Entry{Kind: journal.ResultWritten, ResultDigest: new(jobdir.DigestOf(data)), Reason: "proctor score --write"}
		if err := journal.Append(r.Dir, entry, env.Now); err != nil {
			return err
		}
	}
	if !f.json {
		_, _ = fmt.Fprintf(env.Stderr, "proctor: %s: %s\n", clean(path), what)
	}
	return nil
}

// resultMode keeps the permissions of a file that is replaced.
func resultMode(path string) fs.FileMode {
	if info, err := os.Stat(path); err == nil {
		return info.Mode().Perm()
	}
	return 0o644
}
