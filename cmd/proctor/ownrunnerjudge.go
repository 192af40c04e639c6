package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/ownrunner"
	"github.com/proctor-run/proctor/value"
)

// judgeFlags are the flags of ownrunner judge.
type judgeFlags struct {
	stdout, stderr, task, aggregate string
	exitCode, attempt, expectTrials int
	timedOut, json                  bool
	hasExitCode, hasTrials          bool
}

func newOwnrunnerJudge(env *Env) *cobra.Command {
	f := &judgeFlags{}
	cmd := &cobra.Command{
		Use:   "judge --stdout FILE --exit-code N --attempt A [JOBDIR]",
		Short: "Decide what an attempt of a runner comes to",
		Long: `judge takes what a consumer has when a runner's process has ended: its captured
standard output, its exit code, and the job directory with a record of each
trial. It finds the result line, normalises it, reads the records, and decides
whether the attempt completed, failed, or is to be made once more.

The records decide: when all trials completed, and as many as were planned, the
attempt completes with their aggregate whatever the process claimed; one that did
not complete brings the attempt to nothing. Without JOBDIR the result line stands
for the trials.

Records are trials/NAME/result.json of the contract's own form, or result.json in
any directory below JOBDIR. The results of Harbor's trials, which 'proctor run'
writes too, have neither status nor score where a consumer looks for them: each
counts as failed.

The exit code is 0 whenever something was decided.`,
		Example: `  proctor ownrunner judge --stdout out.txt --exit-code 0 --attempt 1 --expect-trials 3 job
  proctor ownrunner judge --stdout - --timed-out --attempt 2 --json job < out.txt`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return withHint(usageErrorf("accepts one job directory, got %d", len(args)), "proctor ownrunner %s", cmd.Use)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd.Context(), env)
			defer stop()
			f.given(cmd.Flags())
			return f.judge(ctx, env, args)
		},
		ValidArgsFunction: completionOf("judge JOBDIR"),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.stdout, "stdout", "", "the process's captured standard output: a `file`, or - for this command's input")
	fs.StringVar(&f.stderr, "stderr", "", "its captured standard error: a `file`, which --json has with the reason as its last line")
	fs.IntVar(&f.exitCode, "exit-code", 0, "its exit `code`")
	fs.BoolVar(&f.timedOut, "timed-out", false, "it was ended because it took too long")
	fs.IntVar(&f.attempt, "attempt", 0, "`number` of the attempt at this task, from 1")
	fs.IntVar(&f.expectTrials, "expect-trials", 0, "planned `number` of trials (default: any)")
	fs.StringVar(&f.aggregate, "aggregate", string(outcome.MeanOfAttempts), "`how` the trials' scores become one: mean or best-of-k")
	fs.StringVar(&f.task, "task", "", "`id` of the task, for trials whose record has none (default: the directory's name)")
	fs.BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

func (f *judgeFlags) given(fs *pflag.FlagSet) {
	f.hasExitCode, f.hasTrials = fs.Changed("exit-code"), fs.Changed("expect-trials")
}

func (f *judgeFlags) judge(ctx context.Context, env *Env, args []string) error {
	e, err := f.evidence(ctx, env, args)
	if err != nil {
		return err
	}
	j, err := e.Judge()
	if err != nil {
		return usageErrorf("%w", err)
	}
	if j.Doubt != nil {
		_, _ = fmt.Fprintf(env.Stderr, "proctor: warning: the result line counts as malformed: %s\n", clean(j.Doubt.Error()))
	}
	if f.json {
		_, err := env.Stdout.Write(append(value.AppendDumps(nil, j.Object(), value.DumpsOptions{}), '\n'))
		return outputError(err)
	}
	return outputError(printJudgement(env.Stdout, j))
}

// evidence reads what the flags name.
func (f *judgeFlags) evidence(ctx context.Context, env *Env, args []string) (e ownrunner.Evidence, err error) {
	switch {
	case f.stdout == "":
		return e, withHint(usageErrorf("there is no output to judge"), "--stdout FILE names what was captured of the process")
	case !f.hasExitCode && !f.timedOut:
		return e, withHint(usageErrorf("it is not known how the process ended"), "--exit-code N or --timed-out says it")
	case f.attempt < 1:
		return e, withHint(usageErrorf("--attempt %d: attempts count from 1", f.attempt), "--attempt A says how often the task was attempted, this time included")
	case f.hasTrials && f.expectTrials < 1:
		return e, usageErrorf("--expect-trials %d: want at least 1", f.expectTrials)
	}
	e = ownrunner.Evidence{Task: f.task, Attempt: f.attempt}
	if e.Aggregation, err = outcome.ParseAggregation(f.aggregate); err != nil {
		return e, usageErrorf("--aggregate: %w", err)
	}
	if f.hasTrials {
		e.Expected = &f.expectTrials
	}
	e.Run = outcome.Run{ExitCode: f.exitCode, TimedOut: f.timedOut}
	if e.Run.Stdout, err = f.captured(ctx, env, f.stdout); err != nil {
		return e, err
	}
	if f.stderr != "" {
		if e.Stderr, err = f.captured(ctx, env, f.stderr); err != nil {
			return e, err
		}
	}
	if len(args) == 0 {
		return e, nil
	}
	return e, readRecords(&e, args[0], env.Stderr)
}

// maxCaptured bounds what is read of a process's output, of which the last line with
// the prefix counts.
const maxCaptured = 1 << 30

func (f *judgeFlags) captured(ctx context.Context, env *Env, name string) (string, error) {
	if name == "-" {
		data, err := bounded.Read(env.Stdin, maxCaptured)
		if err != nil {
			return "", fmt.Errorf("reading the input: %w", err)
		}
		return strings.ToValidUTF8(string(data), "\uFFFD"), nil
	}
	data, err := bounded.ReadFileContext(ctx, name, maxCaptured)
	if err != nil {
		return "", usageErrorf("%w", err)
	}
	return strings.ToValidUTF8(string(data), "\uFFFD"), nil
}

// readRecords reads the records of a job directory.
func readRecords(e *ownrunner.Evidence, dir string, warnings io.Writer) error {
	var err error
	if e.Trials, err = ownrunner.ReadRecords(dir, e.Task); errors.Is(err, fs.ErrNotExist) {
		e.NoJobDir = true
		return nil
	}
	if err != nil {
		return usageErrorf("%w", err)
	}
	for _, t := range e.Trials {
		if t.Harbor {
			_, _ = fmt.Fprintf(warnings, "proctor: warning: %s is a result of Harbor's form, which counts as failed with score 0\n", clean(t.Name))
			break
		}
	}
	return nil
}

func printJudgement(w io.Writer, j ownrunner.Judgement) error {
	_, err := fmt.Fprintf(w, "attempt  %d: %s, score %s%s\n", j.Number, j.Attempt.Status, value.FloatRepr(j.Attempt.Score), becauseOf(outcome.Code(j.Attempt.Error)))
	if err == nil {
		_, err = fmt.Fprintf(w, "outcome  %s, score %s%s\n", j.Attempt.Outcome, value.FloatRepr(j.Attempt.OutcomeScore), becauseOf(j.Attempt.OutcomeReason))
	}
	if err == nil {
		_, err = fmt.Fprintf(w, "process  %s, score %s%s\n", j.Host.Status, value.FloatRepr(j.Host.Score), becauseOf(j.Host.Reason))
	}
	for i, t := range j.Attempt.Trials {
		if err != nil || i == shownTrials {
			break
		}
		score := "no score"
		if t.Score != nil {
			score = "score " + value.FloatRepr(*t.Score)
		}
		_, err = fmt.Fprintf(w, "trial    %s: %s, %s%s\n", clean(t.Name), t.Status, score, becauseOf(outcome.Code(t.Reason)))
	}
	if more := len(j.Attempt.Trials) - shownTrials; err == nil && more > 0 {
		_, err = fmt.Fprintf(w, "         and %s more\n", count(more, "trial"))
	}
	if err == nil {
		_, err = fmt.Fprintln(w, clean(j.Why))
	}
	return err //nolint:wrapcheck // the caller says that it is the output
}

// shownTrials bounds the trials that are printed; --json has all.
const shownTrials = 20

func becauseOf(reason outcome.Code) string {
	if reason == "" {
		return ""
	}
	return ", " + clean(string(reason))
}
