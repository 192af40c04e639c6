package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/sandbox/bench"
)

func newBench(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what this machine can do",
		Args:  noUnknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchSandbox(env))
	return cmd
}

// benchFlags are the flags of bench sandbox.
type benchFlags struct {
	runs, trials, atATime  int
	only                   []string
	environments, runtimes []string
	image, svg             string
	json                   bool
	// hardened and allowRemote are as for run.
	hardened, allowRemote bool
}

func newBenchSandbox(env *Env) *cobra.Command {
	f := &benchFlags{}
	var names []string
	for _, op := range bench.Operations() {
		names = append(names, fmt.Sprintf("  %-14s %s", op.Name, op.What))
	}
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "Benchmark sandbox create, exec, reset and destroy",
		Long: `sandbox measures every environment and runtime that works here in one run, in
which they take turns. "engine" is the Docker Engine as any client of its API
uses it; ratios are speed-ups relative to it, and where there is no engine, to
the first. Reset, fork and pool are compared with create.

Environment host, the default beside docker, rests on this machine's own files
and needs no image; -e sandbox needs --image.

Operations:
` + strings.Join(names, "\n"),
		Example: `  proctor bench sandbox
  proctor bench sandbox --runs 20 --only create,command -e host --runtime gvisor
  proctor bench sandbox --json > bench.json --svg bench.svg`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd.Context(), env)
			defer stop()
			err := benchSandbox(ctx, env, f)
			if ctx.Err() != nil {
				return errInterrupted
			}
			return err
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.IntVar(&f.runs, "runs", 5, "measure `N` rounds, after one that warms up")
	fs.StringSliceVar(&f.only, "only", nil, "measure these `operations` only; comma-separated")
	fs.StringSliceVarP(&f.environments, "env", "e", nil, "measure these `environments` only: "+strings.Join(backends().Names(), ", "))
	fs.StringSliceVar(&f.runtimes, "runtime", nil, "measure these `runtimes` only")
	jobcli.DefineHardening(fs, &f.hardened, &f.allowRemote)
	fs.StringVar(&f.image, "image", "", "`image` for docker, which must be in the engine, and for sandbox; empty means one that the engine has")
	fs.IntVar(&f.trials, "trials", 20, "run `N` trials of hello-world for the trials per second")
	fs.IntVarP(&f.atATime, "n-concurrent", "n", 0, "run `N` of those at a time (default: one for each processor)")
	fs.BoolVar(&f.json, "json", false, "print one JSON object")
	fs.StringVar(&f.svg, "svg", "", "write a chart to `FILE`")
	return cmd
}

func benchSandbox(ctx context.Context, env *Env, f *benchFlags) error {
	if f.runs < 1 || f.trials < 1 || f.atATime < 0 {
		return usageErrorf("--runs %d, --trials %d, -n %d: want positive numbers", f.runs, f.trials, f.atATime)
	}
	known := bench.Operations()
	for _, name := range f.only {
		if !slices.ContainsFunc(known, func(op bench.Operation) bool { return op.Name == name }) {
			return withHint(usageErrorf("--only %s: there is no operation of that name", name), "'proctor bench sandbox --help' lists them")
		}
	}
	dir, err := os.MkdirTemp("", "proctor-bench")
	if err != nil {
		return fmt.Errorf("making a directory for the trials: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	found := &benchSubjects{env: env, flags: f, dir: dir}
	defer found.close()
	if err := found.find(ctx); err != nil {
		return err
	}
	report, err := bench.Run(ctx, bench.Options{
		Subjects: found.subjects, Runs: f.runs, Only: f.only, Trials: f.trials, AtATime: f.atATime, Now: env.Now,
		Progress: func(line string) { _, _ = fmt.Fprintf(env.Stderr, "proctor: %s\n", line) },
	})
	if err != nil {
		return err
	}
	return errors.Join(writeBench(env, f, report), failedBench(report))
}

func writeBench(env *Env, f *benchFlags, report *bench.Report) error {
	if f.svg != "" {
		var chart strings.Builder
		if err := report.WriteSVG(&chart); err != nil {
			return err
		}
		if err := atomicfile.WriteUnsynced(f.svg, []byte(chart.String()), 0o644); err != nil {
			return err
		}
	}
	if !f.json {
		return report.WriteTable(env.Stdout)
	}
	if err := json.NewEncoder(env.Stdout).Encode(report); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// failedBench is the error of a report in which an operation failed that the
// backend should be able to do.
func failedBench(report *bench.Report) error {
	for _, res := range report.Results {
		for _, m := range res.Subjects {
			if m.Note != "" && !m.Unable {
				return fmt.Errorf("%s of %s could not be measured: %s", res.Name, m.Subject, clean(m.Note))
			}
		}
	}
	return nil
}
