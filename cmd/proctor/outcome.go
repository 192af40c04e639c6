package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/report"
)

func newOutcome(env *Env) *cobra.Command {
	var explained bool
	cmd := &cobra.Command{
		Use:   "outcome JOBDIR|result.json",
		Short: "Print the result line that consumers of a job look for",
		Long: `outcome prints the line BASE_BENCHMARK_RESULT={...} for a job: status, score,
resolved, total and reason code, as they follow from the job's result.json. It
always prints a line, even if that file is missing or malformed; the exit code is
0 whenever a line was printed.

With --explain it also says how each field came about, which trial decided it,
and what a consumer that follows the rules makes of the line.`,
		Example: `  proctor outcome jobs/2026-06-09__10-00-00
  proctor outcome --explain result.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return withHint(usageErrorf("accepts one job directory or result file, got %d", len(args)), "proctor %s", cmd.Use)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return printOutcome(env, resultFile(args[0]), explained)
		},
	}
	cmd.Flags().BoolVar(&explained, "explain", false, "say how each field came about")
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

func printOutcome(env *Env, path string, explained bool) error {
	x := &report.Outcome{Explanation: outcome.Read(path)}
	if explained {
		x = report.ReadOutcome(path)
	}
	line, err := x.Outcome.Line()
	if err != nil {
		return fmt.Errorf("printing the outcome of %q: %w", path, err)
	}
	_, _ = fmt.Fprintln(env.Stdout, line)
	if x.Err != nil && !explained {
		_, _ = fmt.Fprintf(env.Stderr, "proctor: warning: %s\n", clean(x.Err.Error()))
	}
	if explained {
		explainOutcome(env.Stdout, x, line)
	}
	return nil
}
