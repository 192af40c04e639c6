package ownrunner

import (
	"errors"
	"fmt"

	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// ParseTrial reads a trial's result.json, see [Trial.ResultJSON], as a runner does that
// goes on with a job: a trial whose record can be read is not run again. The error is
// that of a record that is no object or lacks task_name, trial_name or status. (Outcome
// mapping, section 11.4.)
func ParseTrial(data []byte) (Trial, error) {
	v, err := value.Decode(data)
	if err != nil {
		return Trial{}, fmt.Errorf("reading a trial's record: %w", err)
	}
	obj, ok := v.(*value.Object)
	if !ok {
		return Trial{}, fmt.Errorf("reading a trial's record: expected an object, got %s", value.TypeName(v))
	}
	t := Trial{
		TaskName: text(obj, "task_name"), TrialName: text(obj, "trial_name"), Status: outcome.Status(text(obj, "status")),
		Reason: outcome.Code(text(obj, "reason_code")), AgentName: text(obj, "agent_name"),
		ModelName: optionalText(obj, "model_name"), Source: optionalText(obj, "source"),
	}
	if t.TaskName == "" || t.TrialName == "" || t.Status == "" {
		return Trial{}, errors.New("reading a trial's record: task_name, trial_name or status is missing")
	}
	if errored, ok := member(obj, "errored").(value.Bool); ok {
		t.Errored = bool(errored)
	}
	if rewards, ok := member(obj, "rewards").(*value.Object); ok {
		t.Rewards = &reward.Rewards{}
		for name, v := range rewards.All() {
			x, ok := v.(value.Number)
			if !ok {
				return Trial{}, fmt.Errorf("reading a trial's record: reward %q: expected a number, got %s", name, value.TypeName(v))
			}
			t.Rewards.Set(name, x)
		}
	}
	return t, nil
}

func member(obj *value.Object, key string) value.Value {
	v, _ := obj.Get(key)
	return v
}

func text(obj *value.Object, key string) string {
	s, _ := member(obj, key).(value.Str)
	return string(s)
}

func optionalText(obj *value.Object, key string) *string {
	s, ok := member(obj, key).(value.Str)
	if !ok {
		return nil
	}
	return new(string(s))
}
