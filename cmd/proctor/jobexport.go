package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/job/junit"
)

// junitFlags say where a JUnit file goes and what counts as passed in it.
type junitFlags struct {
	file   string
	passAt float64
	reward string
}

func (f *junitFlags) define(fs *pflag.FlagSet) {
	fs.StringVar(&f.file, "junit", "", "write the trials as JUnit XML to this `file`")
	fs.Float64Var(&f.passAt, "pass-at", 1, "a trial passes in JUnit XML from this `reward` on")
	fs.StringVar(&f.reward, "pass-reward", "", "`name` of the reward that decides (default: the only one, else \"reward\", else all)")
}

// check finds out before a run what would fail after it.
func (f *junitFlags) check() error {
	switch {
	case math.IsNaN(f.passAt):
		return usageErrorf("--pass-at nan: no reward reaches it")
	case f.file == "" || isDirectory(filepath.Dir(f.file)):
		return nil
	}
	return usageErrorf("--junit %s: there is no directory %q", f.file, filepath.Dir(f.file))
}

func newJobExport(env *Env) *cobra.Command {
	f := &junitFlags{}
	cmd := &cobra.Command{
		Use:   "export --junit FILE JOBDIR",
		Short: "Export results (JUnit XML)",
		Long: `export writes the trials of a job as JUnit XML, which continuous integration
systems show: a test suite for each agent, model and dataset, a test case for
each trial.

A trial passes when its reward reaches --pass-at. One below is a failure; an
exception without a reward is an error; a trial that has no result yet, or was
not verified, is skipped. FILE "-" is standard output.

'proctor run --junit FILE' does the same at the end of a run.`,
		Example: `  proctor job export --junit report.xml jobs/2026-06-09__10-00-00
  proctor job export --junit - --pass-at 0.5 jobs/2026-06-09__10-00-00`,
		Args: oneDirectory("job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd.Context(), env)
			defer stop()
			if f.file == "" {
				return withHint(usageErrorf("there is nothing to write"), "--junit FILE says where")
			}
			return exportJUnit(ctx, env, f, args[0])
		},
		ValidArgsFunction: completionOf("export JOBDIR"),
	}
	f.define(cmd.Flags())
	return cmd
}

// exportJUnit writes the file at once, so that no reader sees half of it.
func exportJUnit(ctx context.Context, env *Env, f *junitFlags, dir string) error {
	if err := f.check(); err != nil {
		return err
	}
	r, err := junit.Read(ctx, dir, junit.Options{PassAt: f.passAt, Reward: f.reward})
	if errors.Is(err, fs.ErrNotExist) {
		return withHint(usageErrorf("%q is not a job directory: %w", dir, err), "'proctor job list' lists the jobs")
	}
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := r.Write(&text); err != nil {
		return err
	}
	if f.file == "-" {
		_, err = env.Stdout.Write(text.Bytes())
		return err
	}
	if err := atomicfile.Write(f.file, text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing JUnit XML: %w", err)
	}
	return nil
}
