package score

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"time"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/value"
)

// RescoreOptions change how a job directory is aggregated again.
type RescoreOptions struct {
	// Metrics, when not nil, replace those of the job's configuration, for
	// every dataset.
	Metrics []Metric
	// Datasets are the metrics that the job's datasets bring along, if any is
	// known to.
	Datasets []DatasetMetrics
	// Scripts computes uv-script metrics.
	Scripts ScriptMetric
}

// Rescored is a job directory aggregated again from its trials.
type Rescored struct {
	Dir string
	// Result is what the trials give. Times, id and the numbers of planned
	// trials and of retries are those of the stored result.
	Result jobdir.Result
	// Records are the trials in their final order.
	Records []scan.FileRecord
	// Unfinished names the sub-directories without result.
	Unfinished []string
	// Warnings tell what had to be assumed.
	Warnings []string

	stored *value.Object // the document of the stored result; nil without one
	live   bool          // the stored result is that of a job that has not finished
}

// Trials are the records in their final order, without what is known of their files.
func (r *Rescored) Trials() []jobdir.Record {
	records := make([]jobdir.Record, len(r.Records))
	for i := range r.Records {
		records[i] = r.Records[i].Record
	}
	return records
}

// Rescore aggregates a job directory from its trials' results. It reads them
// in parallel and keeps one record per trial. A result that cannot be read is
// an error that names the file, and so are two trials of one name, of which one is a copy.
func Rescore(ctx context.Context, dir string, opts RescoreOptions) (*Rescored, error) {
	scanned, err := scan.Dir(ctx, dir)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(scanned.Errors...); err != nil {
		return nil, err
	}
	if err := checkNames(dir, scanned.Records); err != nil {
		return nil, err
	}
	r := &Rescored{Dir: dir, Unfinished: scanned.Unfinished}
	if err := r.readStored(); err != nil {
		return nil, err
	}
	r.Records = finalOrder(scanned.Records, r.stored)
	restoreInfinities(r.Records, r.stored)
	metrics, err := r.metrics(opts)
	if err != nil {
		return nil, err
	}
	if err := r.aggregate(metrics.Bind(opts.Scripts)); err != nil {
		return nil, fmt.Errorf("aggregating %q: %w", dir, err)
	}
	return r, nil
}

// ErrTwice is the error of a job directory that has a trial more than once.
var ErrTwice = errors.New("the trial is there more than once")

func checkNames(dir string, records []scan.FileRecord) error {
	places := make(map[string]string, len(records))
	for _, r := range records {
		if other, twice := places[r.TrialName]; twice {
			return fmt.Errorf("%w: %q is the name of the trials in %q and %q of %q; move the copy away", ErrTwice, r.TrialName, other, r.Dir, dir)
		}
		places[r.TrialName] = r.Dir
	}
	return nil
}

// readStored reads the job's result.json, whose times and plan the new result
// keeps.
func (r *Rescored) readStored() error {
	name := filepath.Join(r.Dir, scan.ResultFile)
	data, err := jobdir.ReadJobFile(r.Dir, scan.ResultFile)
	if errors.Is(err, fs.ErrNotExist) {
		r.warn("there is no %s: the planned number of trials is taken to be the number found", scan.ResultFile)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading job result: %w", err)
	}
	if r.Result, err = jobdir.ParseResult(data); err != nil {
		return fmt.Errorf("reading %q: %w", name, err)
	}
	v, err := value.Decode(data)
	if err != nil {
		return fmt.Errorf("reading %q: %w", name, err)
	}
	if v, err = jobdir.LegacyResult(nil, v); err != nil {
		return fmt.Errorf("reading %q: %w", name, err)
	}
	r.stored, _ = v.(*value.Object)
	r.live = r.Result.FinishedAt == nil
	return nil
}

func (r *Rescored) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// metrics finds out which metrics the job used.
func (r *Rescored) metrics(opts RescoreOptions) (Metrics, error) {
	if opts.Metrics != nil {
		return r.everywhere(opts.Metrics), nil
	}
	name := filepath.Join(r.Dir, scan.ConfigFile)
	data, err := jobdir.ReadJobFile(r.Dir, scan.ConfigFile)
	if errors.Is(err, fs.ErrNotExist) {
		r.warn("there is no %s: the metric is taken to be the mean", scan.ConfigFile)
		return r.everywhere([]Metric{{Type: jobdir.MetricMean}}), nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading job config: %w", err)
	}
	c, _, err := jobdir.ParseConfig(data, jobdir.JSON, time.Time{})
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", name, err)
	}
	own, err := ConfiguredMetrics(c.Metrics)
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", name, err)
	}
	datasets := make([]DatasetMetrics, len(c.Datasets))
	for i, d := range c.Datasets {
		datasets[i].Name = d.SourceName()
		for _, known := range opts.Datasets {
			if known.Name == datasets[i].Name {
				datasets[i].Metrics = known.Metrics
			}
		}
	}
	return NewMetrics(own, datasets), nil
}

// everywhere gives every group the same metrics.
func (r *Rescored) everywhere(metrics []Metric) Metrics {
	m := Metrics{}
	for i := range r.Records {
		m[finalName(r.Records[i].EvalsKey())] = metrics
		m[r.Records[i].Dataset()] = metrics
	}
	return m
}

func (r *Rescored) aggregate(metrics Metrics) error {
	if r.stored == nil {
		r.Result.NTotalTrials = len(r.Records)
		r.describe()
	}
	retries := r.Result.Stats.NRetries
	if r.live {
		return r.aggregateLive(metrics, retries)
	}
	a := NewAggregator(metrics)
	for i := range r.Records {
		a.Add(r.Records[i].Record)
	}
	stats, err := a.Stats(r.Result.NTotalTrials, retries)
	r.Result.Stats = stats
	return err
}

// aggregateLive gives the state of a job that stopped before its final
// assembly.
func (r *Rescored) aggregateLive(metrics Metrics, retries int) error {
	l := NewLive(LiveConfig{Total: r.Result.NTotalTrials, Metrics: metrics, Retries: retries})
	for i := range r.Records {
		if err := l.End(r.Records[i].Record, jobdir.Time{}); err != nil {
			return err
		}
	}
	r.Result.Stats = l.Result().Stats
	return nil
}

// describe fills in id and times from the trials, for want of a result.
func (r *Rescored) describe() {
	if len(r.Records) == 0 {
		return
	}
	data, err := jobdir.ReadTrialFile(r.Dir, filepath.Join(r.Records[0].Dir, scan.ResultFile))
	if err != nil {
		return
	}
	first, err := jobdir.ParseTrialResult(data)
	if err != nil {
		return
	}
	if first.Config.JobID != nil {
		r.Result.ID = *first.Config.JobID
	}
	if first.StartedAt != nil {
		r.Result.StartedAt = jobdir.Local(first.StartedAt.In(time.Local))
	}
}

// restoreInfinities gives rewards their sign of infinity back: a trial's file
// holds null for them, but the job's result lists the trial under "inf".
func restoreInfinities(records []scan.FileRecord, stored *value.Object) {
	infinite := map[string]map[string]value.Float{} // by trial, then reward name
	for _, group := range objects(at(stored, "stats", "evals")) {
		for name, values := range at(group, "reward_stats").All() {
			for _, text := range []string{"inf", "-inf"} {
				markInfinite(infinite, name, text, values)
			}
		}
	}
	for _, r := range records {
		for name, x := range infinite[r.TrialName] {
			if was, ok := r.Rewards.Get(name); ok && isNaN(was) {
				r.Rewards.Set(name, x)
			}
		}
	}
}

func markInfinite(infinite map[string]map[string]value.Float, name, text string, values value.Value) {
	obj, _ := values.(*value.Object)
	if obj == nil {
		return
	}
	v, _ := obj.Get(text)
	list, _ := v.(value.List)
	x, _ := value.FloatLiteral(text)
	for _, item := range list {
		trialName, _ := item.(value.Str)
		if infinite[string(trialName)] == nil {
			infinite[string(trialName)] = map[string]value.Float{}
		}
		infinite[string(trialName)][name] = x
	}
}

func isNaN(x value.Number) bool {
	f, ok := x.(value.Float)
	return ok && math.IsNaN(float64(f))
}
