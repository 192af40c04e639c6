package reward

import (
	"context"
	"fmt"

	"github.com/proctor-run/proctor/value"
)

// A ScriptRunner runs a metric script: it puts the rewards into a file, runs
// [ScriptCommand], and returns the content of the output file. It returns
// [NewScriptNotFound] for a script that is not there and [NewScriptFailed] for one
// that exits with another status than 0.
type ScriptRunner func(ctx context.Context, script string, rewards []byte) (metric []byte, err error)

// ScriptCommand is the command line of a uv-script metric, given the paths of the
// script, of its input and of its output (reward semantics, section 8.2).
func ScriptCommand(script, rewards, metric string) []string {
	return []string{"uv", "run", script, "-i", rewards, "-o", metric}
}

// NewScriptNotFound returns the error of a metric whose script is not there.
func NewScriptNotFound(script string) *Error {
	return &Error{Kind: ScriptNotFound, Message: "Script file not found: " + script}
}

// NewScriptFailed returns the error of a metric whose script failed; it aborts the
// job.
func NewScriptFailed(stderr string) *Error {
	return &Error{Kind: ScriptFailed, Message: "Failed to compute custom metric: " + stderr}
}

// AggregateScript computes a metric of type uv-script over the rewards of a
// group's trials, nil where a trial has none. What the script writes is used as it
// is; it must be a JSON object.
func AggregateScript(ctx context.Context, run ScriptRunner, script string, trials []*Rewards) (*value.Object, error) {
	var input []byte
	for _, r := range trials {
		input = append(value.AppendDumps(input, r.Object(), value.DumpsOptions{}), '\n')
	}
	output, err := run(ctx, script, input)
	if err != nil {
		return nil, err
	}
	v, err := value.Decode(output)
	if err != nil {
		return nil, fmt.Errorf("reading the output of metric script %q: %w", script, err)
	}
	o, ok := v.(*value.Object)
	if !ok {
		return nil, fmt.Errorf("reading the output of metric script %q: it is a %s, not an object", script, value.TypeName(v))
	}
	return o, nil
}
