package main

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
	// maxMetricSize bounds what a metric script may write: a few numbers.
	maxMetricSize = 16 << 20
	// maxMetricStderr bounds how much of what it says is shown.
	maxMetricStderr = 64 << 10
	// metricGrace is how long a script may take to end when it is told to.
	metricGrace = 5 * time.Second
)

// metricScripts computes metrics of type uv-script by running their scripts with
// uv on this machine, with this program's variables.
func metricScripts(ctx context.Context, env *Env) score.ScriptMetric {
	return func(script string) func([]*reward.Rewards) (*value.Object, error) {
		return func(trials []*reward.Rewards) (*value.Object, error) {
			return reward.AggregateScript(ctx, env.runMetricScript, script, trials)
		}
	}
}

// errScriptNotRun is the error of a metric script that nobody allowed to run.
var errScriptNotRun = errors.New("the job names a metric script, which is not run unasked")

// noMetricScripts refuses to run scripts: a job directory may come from
// anybody.
func noMetricScripts(script string) func([]*reward.Rewards) (*value.Object, error) {
	return func([]*reward.Rewards) (*value.Object, error) {
		return nil, fmt.Errorf("metric script %q: %w", script, errScriptNotRun)
	}
}

// runMetricScript is a [reward.ScriptRunner].
func (e *Env) runMetricScript(ctx context.Context, script string, rewards []byte) (metric []byte, err error) {
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
	cmd.Env = e.Environ
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // uv hands it on to the script
	cmd.WaitDelay = metricGrace
	stderr := bounded.NewTail(maxMetricStderr)
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
	return readMetric(output)
}

func readMetric(path string) ([]byte, error) {
	data, err := bounded.ReadFile(path, maxMetricSize)
	if err != nil {
		return nil, fmt.Errorf("reading the output of a metric script: %w", err)
	}
	return data, nil
}
