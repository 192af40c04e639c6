package score

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// Metric aggregates the rewards of a group of trials into a map.
type Metric struct {
	Type   jobdir.MetricType `json:"type"`
	Script string            `json:"script,omitempty"` // path, of type uv-script
	// Compute is what [Metrics.Bind] sets for metrics of type uv-script: it
	// gets the rewards of the group in order, nil where a trial has none.
	Compute func([]*reward.Rewards) (*value.Object, error) `json:"-"`
}

// Metrics maps dataset names to their metrics, in order. A name that is not
// there has none.
type Metrics map[string][]Metric

// NewMetrics says which metrics apply to which dataset (reward semantics,
// section 8.3): to "adhoc" and to each dataset of the job those the dataset
// brings along and then the job's own, or the mean where that leaves none.
//
// datasets holds, for each dataset of the configuration in order, its name and
// own metrics; a dataset that is listed twice gets the job's metrics twice.
func NewMetrics(jobMetrics []Metric, datasets []DatasetMetrics) Metrics {
	m := Metrics{jobdir.AdHoc: append([]Metric(nil), jobMetrics...)}
	for _, d := range datasets {
		m[d.Name] = append(m[d.Name], d.Metrics...)
		m[d.Name] = append(m[d.Name], jobMetrics...)
	}
	for name, list := range m {
		if len(list) == 0 {
			m[name] = []Metric{{Type: jobdir.MetricMean}}
		}
	}
	return m
}

// DatasetMetrics are the metrics that a dataset brings along.
type DatasetMetrics struct {
	Name    string
	Metrics []Metric
}

// finalName is the dataset name under which the final assembly looks up a
// group's metrics: what follows the last "__" when the key is split from the
// left. For a dataset with "__" in its name that is another dataset, or none
// (Harbor job format, section 5.4).
func finalName(evalsKey string) string {
	for {
		_, rest, found := strings.Cut(evalsKey, jobdir.KeySeparator)
		if !found {
			return evalsKey
		}
		evalsKey = rest
	}
}

var errNoScriptRunner = errors.New("nothing here runs metric scripts")

// compute returns the metric's value for a group.
func (m Metric) compute(acc *accumulator, rewards []*reward.Rewards) (*value.Object, error) {
	if m.Compute != nil {
		return m.Compute(rewards)
	}
	if m.Type == jobdir.MetricUVScript {
		return nil, errNoScriptRunner
	}
	return acc.metric(m.Type)
}

// ScriptMetric returns what computes a uv-script metric, given the path of its
// script.
type ScriptMetric func(script string) func([]*reward.Rewards) (*value.Object, error)

// ConfiguredMetrics makes metrics of their configurations. Those of type
// uv-script can be computed once they are bound, see [Metrics.Bind].
func ConfiguredMetrics(list []jobdir.MetricConfig) ([]Metric, error) {
	out := make([]Metric, len(list))
	for i, c := range list {
		out[i].Type = c.Type
		if c.Type != jobdir.MetricUVScript {
			continue
		}
		var v value.Value
		if c.Kwargs != nil {
			v, _ = c.Kwargs.Get("script_path")
		}
		script, ok := v.(value.Str)
		if !ok {
			return nil, fmt.Errorf("metrics[%d]: a %q metric needs kwargs.script_path", i, c.Type)
		}
		out[i].Script = string(script)
	}
	return out, nil
}

// Bind returns the metrics with what computes those of type uv-script; nil
// scripts leave them without.
func (m Metrics) Bind(scripts ScriptMetric) Metrics {
	if scripts == nil {
		return m
	}
	bound := make(Metrics, len(m))
	for name, list := range m {
		list = slices.Clone(list)
		for i, metric := range list {
			if metric.Type == jobdir.MetricUVScript && metric.Compute == nil {
				list[i].Compute = scripts(metric.Script)
			}
		}
		bound[name] = list
	}
	return bound
}
