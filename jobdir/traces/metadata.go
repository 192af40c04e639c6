package traces

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/value"
)

// maxResult is the size of the largest result.json that is read: those of jobs
// list all their trials.
const maxResult = 256 << 20

// maxParents is how far above a trial its results are looked for.
const maxParents = 3

// trial is a trial's directory with what is said about it.
type trial struct {
	dir                    string
	result                 value.Value // the nearest result.json
	agent, model, provider string
	task, runID, name      string
	date                   string
	outcome                value.Value // the row's member result
}

// ErrResult is wrapped by the error of a trial of which nothing is known because its
// result.json cannot be read.
var ErrResult = errors.New("the trial's result cannot be read")

// readMetadata reports whether the agent is known.
func (t *trial) readMetadata() (known bool, err error) {
	for i, dir := 0, t.dir; i <= maxParents && t.result == nil; i, dir = i+1, filepath.Dir(dir) {
		var bad error
		if t.result, bad = readResult(dir); i == 0 && bad != nil {
			err = fmt.Errorf("%w: %w", ErrResult, bad)
		}
	}
	r := t.result
	config, info := at(r, "config"), at(r, "agent_info")
	agent := at(config, "agent")
	if _, ok := agent.(*value.Object); !ok {
		agent = first(at(config, "agents"))
	}
	model := at(info, "model_info")
	t.agent = text(at(at(config, "agent"), "name"), at(first(at(config, "agents")), "name"), at(info, "name"), at(config, "agent_name"), at(r, "agent_name"))
	t.model = text(at(model, "name"), at(agent, "model_name"), at(info, "model_name"), at(config, "engine"), value.Str("unknown-model"))
	t.provider = text(at(model, "provider"), at(agent, "provider"), at(info, "provider"), at(config, "engine"), value.Str("unknown-provider"))
	t.name = text(at(r, "trial_name"), value.Str(filepath.Base(t.dir)))
	t.runID = text(at(config, "job_id"), at(config, "job_name"), at(r, "job_id"), at(r, "run_id"), value.Str(t.name))
	t.task = text(at(r, "task_name"), value.Str("unknown-task"))
	t.date = text(at(r, "started_at"))
	t.outcome = t.findOutcome()
	if t.agent != "" {
		return true, nil // what another result says is enough, as it is for Harbor
	}
	return false, err
}

// readResult reads a directory's result.json, nil where there is none.
func readResult(dir string) (value.Value, error) {
	const name = "result.json"
	data, err := bounded.ReadIn(dir, name, maxResult)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v, err := value.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", filepath.Join(dir, name), err)
	}
	return v, nil
}

// findOutcome is an exception's name, the text of a reward, or null: what the job
// says of the trial, else what the trial says of itself.
func (t *trial) findOutcome() value.Value {
	if v := t.jobOutcome(); v != nil {
		return v
	}
	if name, ok := at(at(t.result, "exception_info"), "exception_type").(value.Str); ok {
		return name
	}
	return floatText(at(at(at(t.result, "verifier_result"), "rewards"), "reward"))
}

// jobOutcome looks the trial up in the statistics of the nearest job.
func (t *trial) jobOutcome() value.Value {
	var evals *value.Object
	for i, dir := 0, t.dir; i <= maxParents && evals == nil; i, dir = i+1, filepath.Dir(dir) {
		result, _ := readResult(dir) // what cannot be read says nothing
		evals, _ = at(at(result, "stats"), "evals").(*value.Object)
	}
	if evals == nil {
		return nil
	}
	for _, eval := range evals.All() {
		if name, ok := bucketOf(at(eval, "exception_stats"), t.dir); ok {
			return value.Str(name)
		}
	}
	for _, eval := range evals.All() {
		if bucket, ok := bucketOf(at(at(eval, "reward_stats"), "reward"), t.dir); ok {
			return floatText(value.Str(bucket))
		}
	}
	return nil
}

// bucketOf is the member whose list of trials has the directory's name.
func bucketOf(buckets value.Value, dir string) (string, bool) {
	o, ok := buckets.(*value.Object)
	if !ok {
		return "", false
	}
	name := value.Str(filepath.Base(dir))
	for bucket, v := range o.All() {
		trials, _ := v.(value.List)
		if slices.ContainsFunc(trials, func(v value.Value) bool { s, ok := v.(value.Str); return ok && s == name }) {
			return bucket, true
		}
	}
	return "", false
}

// floatText is Python's str(float(x)), null for what is no number.
func floatText(v value.Value) value.Value {
	var f float64
	switch v := v.(type) {
	case value.Number:
		x, err := value.ToFloat(v)
		if err != nil {
			return value.Null{}
		}
		f = x
	case value.Str:
		x, err := value.ParseFloat(string(v))
		if err != nil {
			return value.Null{}
		}
		f = float64(x)
	default:
		return value.Null{}
	}
	return value.Str(value.FloatRepr(f))
}

func (t *trial) isSuccess() bool {
	s, ok := t.outcome.(value.Str)
	if !ok {
		return false
	}
	f, err := value.ParseFloat(string(s))
	return err == nil && f > 0
}

// withoutTrajectory are the agents of Harbor that leave none (section 1.3).
var withoutTrajectory = []string{"oracle", "nop", "aider", "langgraph", "pi"}

// supported refuses trials that cannot have a trajectory. Harbor refuses them
// whatever they hold, and agents that it does not know.
func (t *trial) supported() error {
	if slices.Contains(withoutTrajectory, t.agent) && len(t.trajectoryFiles()) == 0 {
		return &UnsupportedError{Agent: t.agent}
	}
	return nil
}

// at returns a member of an object, nil of everything else.
func at(v value.Value, key string) value.Value {
	o, ok := v.(*value.Object)
	if !ok {
		return nil
	}
	m, _ := o.Get(key)
	return m
}

func first(v value.Value) value.Value {
	if l, ok := v.(value.List); ok && len(l) > 0 {
		return l[0]
	}
	return nil
}

// text is the first that is text and not empty.
func text(candidates ...value.Value) string {
	for _, v := range candidates {
		if s, ok := v.(value.Str); ok && s != "" {
			return string(s)
		}
	}
	return ""
}
