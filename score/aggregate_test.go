package score_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

var builtin = []score.Metric{{Type: jobdir.MetricMean}, {Type: jobdir.MetricSum}, {Type: jobdir.MetricMax}, {Type: jobdir.MetricMin}}

// drawRecords draws trials of a few groups with rewards of every kind.
func drawRecords(t *rapid.T) []jobdir.Record {
	number := rapid.OneOf(
		rapid.Map(rapid.IntRange(0, 1), func(n int) value.Number { return value.NewInt(int64(n)) }),
		rapid.Map(rapid.Int64(), func(n int64) value.Number { return value.NewInt(n) }),
		rapid.Map(rapid.Float64(), func(x float64) value.Number { return value.Float(x) }),
		rapid.SampledFrom([]value.Number{
			value.Float(0.1), value.Float(1), value.Float(math.Copysign(0, -1)), value.Float(math.NaN()), value.Float(math.Inf(1)),
		}),
	)
	n := rapid.IntRange(0, 40).Draw(t, "trials")
	names := []string{"reward"}
	if rapid.Bool().Draw(t, "several rewards") {
		names = []string{"b", "a", "é"}
	}
	records := make([]jobdir.Record, n)
	for i := range records {
		task := rapid.SampledFrom([]string{"t1", "t2", "t3"}).Draw(t, "task")
		r := jobdir.Record{
			TrialName: fmt.Sprintf("%s__%d", task, i),
			TaskName:  task,
			AgentName: "agent",
			Source:    rapid.SampledFrom([]string{"", "ds"}).Draw(t, "source"),
		}
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			r.ExceptionType = rapid.SampledFrom([]string{"ValueError", exception.CancelledError}).Draw(t, "exception")
		case 1:
		default:
			r.Rewards = &reward.Rewards{}
			for _, name := range names {
				if len(names) == 1 || rapid.Bool().Draw(t, "has "+name) {
					r.Rewards.Set(name, number.Draw(t, name))
				}
			}
		}
		if rapid.Bool().Draw(t, "usage") {
			tokens, cost := value.NewInt(int64(i)), float64(i)
			r.Usage = jobdir.Usage{NInputTokens: &tokens, CostUSD: &cost}
		}
		records[i] = r
	}
	return records
}

func allMetrics() score.Metrics { return score.Metrics{jobdir.AdHoc: builtin, "ds": builtin} }

// TestAggregateIncremental compares the running metrics with those computed
// from the whole list.
func TestAggregateIncremental(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		records := drawRecords(t)
		stats, err := score.Aggregate(allMetrics(), records, len(records), 0)
		for key, e := range stats.Evals.All() {
			var list []*reward.Rewards
			for _, r := range records {
				if r.EvalsKey() == key {
					list = append(list, r.Rewards)
				}
			}
			for i, m := range builtin {
				want, wantErr := reward.Aggregate(reward.Metric(m.Type), list)
				if wantErr != nil {
					t.Fatalf("no error, want %v", wantErr)
				}
				if got, want := jobtest.Compact(e.Metrics[i]), jobtest.Compact(want); got != want {
					t.Fatalf("%s of %s: got %s, want %s", m.Type, key, got, want)
				}
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestLiveEqualsFinal lets trials end in the order of the plan, some after
// attempts that failed: the last live state is the final one but for pass@k,
// what retries leave behind, and totals.
func TestLiveEqualsFinal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		records := drawRecords(t)
		live := score.NewLive(score.LiveConfig{Total: len(records), Metrics: allMetrics()})
		retries := 0
		for i, r := range records {
			for rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
				failed := records[rapid.IntRange(0, len(records)-1).Draw(t, "as")]
				failed.TrialName, failed.Source = r.TrialName, r.Source
				failed.Usage = jobdir.Usage{}
				must(t, live.Start(r.TrialName, jobdir.Time{}))
				must(t, live.End(failed, jobdir.Time{}))
				retries++
			}
			must(t, live.Start(r.TrialName, jobdir.Time{}))
			if s := live.Result().Stats; s.NRunningTrials != 1 || s.NPendingTrials != len(records)-i-1 {
				t.Fatalf("trial %d: %d running, %d pending", i, s.NRunningTrials, s.NPendingTrials)
			}
			must(t, live.End(r, jobdir.Time{}))
		}
		final, err := score.Aggregate(allMetrics(), records, len(records), retries)
		must(t, err)
		if got, want := settled(live.Result().Stats), settled(final); got != want {
			t.Fatalf("live\n%s\nfinal\n%s", got, want)
		}
	})
}

// settled shows statistics without pass@k, and without what attempts that
// were taken back leave behind: empty entries, their places and spellings.
func settled(s jobdir.Stats) string {
	lines := []string{fmt.Sprint(s.NCompletedTrials, s.NErroredTrials, s.NRunningTrials, s.NPendingTrials, s.NCancelledTrials, s.NRetries)}
	for key, e := range s.Evals.All() {
		line := fmt.Sprint(key, e.NTrials, e.NErrors)
		for _, m := range e.Metrics {
			line += jobtest.Compact(m)
		}
		lines = append(lines, line)
		for _, name := range e.RewardStats.Names() {
			for _, entry := range e.RewardStats.Entries(name) {
				x, _ := value.ToFloat(entry.Value)
				for _, trialName := range entry.Trials {
					lines = append(lines, fmt.Sprint(key, name, x+0, trialName))
				}
			}
		}
		for kind, names := range e.ExceptionStats.All() {
			for _, trialName := range names {
				lines = append(lines, fmt.Sprint(key, kind, trialName))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestLiveRestart takes trials back out of long groups: the metrics are those
// of the remaining trials in order of completion.
func TestLiveRestart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		live := score.NewLive(score.LiveConfig{Total: 300, Metrics: allMetrics()})
		var done []jobdir.Record
		n := rapid.IntRange(1, 300).Draw(t, "trials")
		for i := range n {
			r := jobdir.Record{TrialName: fmt.Sprint(i), AgentName: "agent", Rewards: &reward.Rewards{}}
			name := "a"
			if i == n/2 {
				name = "late"
			}
			r.Rewards.Set(name, value.Float(float64(i)*0.1))
			must(t, live.End(r, jobdir.Time{}))
			done = append(done, r)
		}
		for range rapid.IntRange(1, 4).Draw(t, "restarts") {
			if len(done) == 0 {
				break
			}
			i := rapid.IntRange(0, len(done)-1).Draw(t, "which")
			must(t, live.Start(done[i].TrialName, jobdir.Time{}))
			done = slices.Delete(done, i, i+1)
			if i > 0 {
				r := done[i-1]
				r.TrialName = fmt.Sprint("again ", n)
				n++
				must(t, live.End(r, jobdir.Time{}))
				done = append(done, r)
			}
		}
		want, err := score.Aggregate(allMetrics(), done, 300, 0)
		must(t, err)
		e, _ := live.Result().Stats.Evals.Get("agent__adhoc")
		if len(done) == 0 {
			if e.Metrics != nil {
				t.Fatalf("metrics of no trials: %v", e.Metrics)
			}
			return
		}
		w, _ := want.Evals.Get("agent__adhoc")
		for i := range builtin {
			if got, want := jobtest.Compact(e.Metrics[i]), jobtest.Compact(w.Metrics[i]); got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
		}
	})
}

func must(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestLiveResumed begins with trials of an earlier run.
func TestLiveResumed(t *testing.T) {
	t.Parallel()
	one := &reward.Rewards{}
	one.Set("reward", value.NewInt(1))
	existing := []jobdir.Record{
		{TrialName: "a", AgentName: "x", Rewards: one},
		{TrialName: "b", AgentName: "x", ExceptionType: exception.CancelledError},
	}
	live := score.NewLive(score.LiveConfig{Total: 3, Metrics: allMetrics(), Existing: existing, Retries: 7})
	s := live.Result().Stats
	e, _ := s.Evals.Get("x__adhoc")
	if s.NCompletedTrials != 2 || s.NCancelledTrials != 1 || s.NPendingTrials != 1 || s.NRetries != 7 || e.Metrics != nil {
		t.Errorf("before: got %+v with metrics %v", s, e.Metrics)
	}
	if err := live.End(jobdir.Record{TrialName: "c", AgentName: "x"}, jobdir.Time{}); err != nil {
		t.Fatal(err)
	}
	if got := jobtest.Compact(e.Metrics[0]); got != `{"mean":0.3333333333333333}` {
		t.Errorf("after: got %s", got)
	}
}

func TestNewMetrics(t *testing.T) {
	t.Parallel()
	sum, maximum, mean := score.Metric{Type: jobdir.MetricSum}, score.Metric{Type: jobdir.MetricMax}, score.Metric{Type: jobdir.MetricMean}
	for _, tt := range []struct {
		name     string
		own      []score.Metric
		datasets []score.DatasetMetrics
		want     string
	}{
		{"nothing", nil, nil, "adhoc:mean"},
		{"the job's", []score.Metric{sum}, nil, "adhoc:sum"},
		{"a dataset without", nil, []score.DatasetMetrics{{Name: "ds"}}, "adhoc:mean ds:mean"},
		{"a dataset's first", []score.Metric{sum}, []score.DatasetMetrics{{Name: "ds", Metrics: []score.Metric{maximum}}}, "adhoc:sum ds:max,sum"},
		{"twice", []score.Metric{mean}, []score.DatasetMetrics{{Name: "ds"}, {Name: "ds"}}, "adhoc:mean ds:mean,mean"},
	} {
		m := score.NewMetrics(tt.own, tt.datasets)
		var parts []string
		for name, list := range m {
			var kinds []string
			for _, metric := range list {
				kinds = append(kinds, string(metric.Type))
			}
			parts = append(parts, name+":"+strings.Join(kinds, ","))
		}
		slices.Sort(parts)
		if got := strings.Join(parts, " "); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestConfiguredMetrics(t *testing.T) {
	t.Parallel()
	kwargs := &value.Object{}
	kwargs.Set("script_path", value.Str("m.py"))
	list := []jobdir.MetricConfig{{Type: jobdir.MetricMean}, {Type: jobdir.MetricUVScript, Kwargs: kwargs}}
	scripts := func(script string) func([]*reward.Rewards) (*value.Object, error) {
		return func(rewards []*reward.Rewards) (*value.Object, error) {
			out := &value.Object{}
			out.Set(script, value.NewInt(int64(len(rewards))))
			return out, nil
		}
	}
	metrics, err := score.ConfiguredMetrics(list)
	if err != nil {
		t.Fatal(err)
	}
	records := []jobdir.Record{{TrialName: "a", AgentName: "x"}, {TrialName: "b", AgentName: "x"}}
	stats, err := score.Aggregate(score.NewMetrics(metrics, nil).Bind(scripts), records, 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	e, _ := stats.Evals.Get("x__adhoc")
	if got := jobtest.Compact(e.Metrics[1]); got != `{"m.py":2}` {
		t.Errorf("got %s", got)
	}

	if _, err := score.Aggregate(score.NewMetrics(metrics, nil), records, 2, 0); err == nil {
		t.Error("a script metric without runner gives no error")
	}
	if _, err := score.ConfiguredMetrics([]jobdir.MetricConfig{{Type: jobdir.MetricUVScript}}); err == nil {
		t.Error("a script metric without script gives no error")
	}
}

func TestHeadline(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ metrics, want string }{
		{`{"mean":0.5}`, "Mean: 0.500"}, {`{"sum":3}`, "Sum: 3.000"}, {`{"exit code-x2y":1}`, "Exit Code-X2Y: 1.000"},
		{`{"max":NaN}`, "Max: nan"}, {`{"max":-Infinity}`, "Max: -inf"}, {`{"a":null}`, ""}, {`{}`, ""},
	} {
		v, err := value.DecodeText(tt.metrics)
		if err != nil {
			t.Fatal(err)
		}
		e := jobdir.Eval{Metrics: []*value.Object{v.(*value.Object)}}
		if got, err := score.Headline(&e); got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: got %q, %v", tt.metrics, got, err)
		}
	}
}
