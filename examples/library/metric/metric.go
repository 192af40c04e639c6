// Package metric computes a metric of one's own over job directories: the median
// of the rewards.
package metric

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/score/script"
	"github.com/proctor-run/proctor/value"
)

// Median is the metric: for each name that a reward has, the lower of the two
// values in the middle. A trial without the reward counts as 0, as it does in
// the mean.
func Median(trials []*reward.Rewards) (*value.Object, error) {
	var names []string
	for _, r := range trials {
		for name := range r.All() {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	out := &value.Object{}
	for _, name := range names {
		values := make([]float64, len(trials))
		for i, r := range trials {
			x, ok := r.Get(name)
			if !ok {
				continue
			}
			f, err := value.ToFloat(x)
			if err != nil {
				return nil, fmt.Errorf("reward %q: %w", name, err)
			}
			values[i] = f
		}
		slices.Sort(values)
		out.Set("median_"+name, value.Float(values[(len(values)-1)/2]))
	}
	return out, nil
}

// Rescore aggregates a job directory by the median beside the mean, and writes
// nothing.
func Rescore(ctx context.Context, dir string) (jobdir.Result, error) {
	r, err := score.Rescore(ctx, dir, score.RescoreOptions{Metrics: []score.Metric{
		{Type: jobdir.MetricMean},
		{Type: jobdir.MetricUVScript, Script: "median", Compute: Median},
	}})
	if err != nil {
		return jobdir.Result{}, err
	}
	return r.Result, nil
}

// Runner runs metric scripts: in jobs whose configuration names one, it is asked
// for the metric of the path "median" and knows no other.
func Runner(path string) func([]*reward.Rewards) (*value.Object, error) {
	if path == "median" {
		return Median
	}
	return func([]*reward.Rewards) (*value.Object, error) { return nil, reward.NewScriptNotFound(path) }
}

// RescoreWithScripts aggregates a job directory again and runs the metric scripts
// that the job names, with uv on this machine: only for jobs whose scripts one
// trusts.
func RescoreWithScripts(ctx context.Context, dir string) (jobdir.Result, error) {
	r, err := score.Rescore(ctx, dir, score.RescoreOptions{Scripts: script.WithUV(ctx, os.Environ())})
	if err != nil {
		return jobdir.Result{}, err
	}
	return r.Result, nil
}

// Best is the best reward of each name.
func Best(trials []*reward.Rewards) (*value.Object, error) {
	return reward.Aggregate(reward.Max, trials)
}

// Worst is the worst reward of each name.
func Worst(trials []*reward.Rewards) (*value.Object, error) {
	return reward.Aggregate(reward.Min, trials)
}

// Why says for the author of a task what is wrong with a reward file.
func Why(err error) string {
	var e *reward.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	advice := map[reward.Kind]string{
		reward.NotFound:   "the tests wrote no reward",
		reward.Empty:      "the tests opened the reward file and wrote nothing",
		reward.Unparsable: "write a number, or JSON in reward.json",
		reward.TooDeep:    "a reward is a flat object",
		reward.Invalid:    "each value must be a number:" + places(e.Problems),
	}
	return advice[e.Kind]
}

func places(problems []reward.Problem) string {
	text := ""
	for _, p := range problems {
		text += " " + strings.Join(p.Loc, ".")
	}
	return text
}
