// Package script runs the metric scripts that jobs name, with uv on this machine.
//
// A job directory may come from anyone, so whoever scores one decides whether its
// scripts run: [WithUV] runs them, [Refuse] does not. Both are for
// score.RescoreOptions and for the runner of jobs.
package script

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

const (
	// maxOutput bounds what a metric script may write: a few numbers.
	maxOutput = 16 << 20
	// maxStderr bounds how much of what a script says is kept.
	maxStderr = 64 << 10
	// grace is how long a script may take to end after an interrupt.
	grace = 5 * time.Second
)

// ErrNotRun is the error of a metric script that was not allowed to run.
var ErrNotRun = errors.New("the job names a metric script, which is not run unasked")

// Refuse runs no script: the error of each metric is [ErrNotRun].
func Refuse(script string) func([]*reward.Rewards) (*value.Object, error) {
	return func([]*reward.Rewards) (*value.Object, error) {
		return nil, fmt.Errorf("metric script %q: %w", script, ErrNotRun)
	}
}

// WithUV computes metrics of type uv-script by running their scripts with uv, which
// is looked up in the PATH of this process. environ has the script's variables as
// "NAME=value". An ended context interrupts the script, and kills it five seconds
// later.
//
// The errors of a metric are those of [reward.ScriptRunner]: one that is typed for a
// script that does not exist or fails, and others for what this machine lacks.
func WithUV(ctx context.Context, environ []string) score.ScriptMetric {
	run := func(ctx context.Context, script string, rewards []byte) ([]byte, error) {
		return runUV(ctx, environ, script, rewards)
	}
	return func(script string) func([]*reward.Rewards) (*value.Object, error) {
		return func(trials []*reward.Rewards) (*value.Object, error) {
			return reward.AggregateScript(ctx, run, script, trials)
		}
	}
}

func runUV(ctx context.Context, environ []string, script string, rewards []byte) (metric []byte, err error) {
	if _, err := os.Stat(script); err != nil {
		return nil, reward.NewScriptNotFound(script)
	}
	dir, err := os.MkdirTemp("", "proctor-metric-")
	if err != nil {
		return nil, fmt.Errorf("running metric script: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	input, output := filepath.Join(dir, "rewards.jsonl"), filepath.Join(dir, "metric.json")
	if err := os.WriteFile(input, rewards, 0o600); err != nil {
		return nil, fmt.Errorf("running metric script: %w", err)
	}
	argv := reward.ScriptCommand(script, input, output)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = environ
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // uv hands it on to the script
	cmd.WaitDelay = grace
	stderr := bounded.NewTail(maxStderr)
	cmd.Stderr = stderr
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &exit):
		return nil, reward.NewScriptFailed(stderr.String())
	case err != nil:
		return nil, fmt.Errorf("running metric script %q: %w", script, err)
	}
	data, err := bounded.ReadFile(output, maxOutput)
	if err != nil {
		return nil, fmt.Errorf("reading the output of a metric script: %w", err)
	}
	return data, nil
}
