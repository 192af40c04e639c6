package ownrunner

import (
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// Lock is what a job must have in common with an earlier one in the same
// directory to go on with it. The concurrency is not part of it.
type Lock struct {
	AgentName            string
	MaxRetries, Attempts int
	ModelName            *string // nil is null
}

// JSON returns the content of lock.json.
func (l Lock) JSON() []byte {
	obj := value.NewObject(4)
	obj.Append("agent_name", value.Str(l.AgentName))
	obj.Append("max_retries", value.NewInt(int64(l.MaxRetries)))
	obj.Append("model_name", optional(l.ModelName))
	obj.Append("n_attempts", value.NewInt(int64(l.Attempts)))
	return value.AppendDumps(nil, obj, value.DumpsOptions{SortKeys: true})
}

// Summary is the outcome of a job, for [outcome.Emit], which refuses one with a
// score outside of 0 to 1. Trials are grouped by agent, model and source, with
// the mean as the only metric; errored ones count as 0. Reasons stay with the
// trials. (Outcome mapping, section 11.5.)
//
// Errors are those of sums beyond the range of doubles and of scores that are
// not finite.
func Summary(trials []Trial) (outcome.Outcome, error) {
	var order []string
	groups := map[string][]*reward.Rewards{}
	errored := 0
	for _, t := range trials {
		key := t.group()
		if _, known := groups[key]; !known {
			order = append(order, key)
		}
		rewards := t.Rewards
		if t.Errored {
			errored++
			rewards = nil
		}
		groups[key] = append(groups[key], rewards)
	}
	metrics := map[string]*value.Object{}
	for _, key := range order {
		m, err := reward.Aggregate(reward.Mean, groups[key])
		if err != nil {
			return outcome.Outcome{}, err
		}
		metrics[key] = m
	}
	return outcome.OfValue(jobResult(order, metrics, len(trials), len(trials)-errored, errored))
}

// group is the key of a trial's group. Unlike Harbor's, it has the model's name
// as configured.
func (t Trial) group() string {
	key := t.AgentName
	if t.ModelName != nil && *t.ModelName != "" {
		key += "__" + *t.ModelName
	}
	if t.Source != nil && *t.Source != "" {
		return key + "__" + *t.Source
	}
	return key + "__adhoc"
}

// jobResult is the part of a job's result that outcomes are made of.
func jobResult(order []string, metrics map[string]*value.Object, total, completed, errored int) *value.Object {
	evals := value.NewObject(len(order))
	for _, key := range order {
		evals.Append(key, object("metrics", value.List{metrics[key]}))
	}
	stats := object("evals", evals)
	stats.Append("n_completed_trials", value.NewInt(int64(completed)))
	stats.Append("n_errored_trials", value.NewInt(int64(errored)))
	doc := object("stats", stats)
	doc.Append("n_total_trials", value.NewInt(int64(total)))
	return doc
}

func object(key string, v value.Value) *value.Object {
	obj := value.NewObject(3)
	obj.Append(key, v)
	return obj
}
