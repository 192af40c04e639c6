package job_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

// TestResultVectors assembles final results byte for byte.
func TestResultVectors(t *testing.T) {
	t.Parallel()
	names := vectors.Dir(t, "harbor-jobs", "*.json")
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vector := jobtest.Decode(t, vectors.File(t, "harbor-jobs/"+name))
			in := jobtest.Member[*value.Object](t, vector, "input")
			var records []jobdir.Record
			for _, doc := range jobtest.Member[value.List](t, in, "trial_results") {
				records = append(records, jobdir.RecordOf(parseTrial(t, doc)))
			}
			total, retries := integer(t, in, "n_total_trials"), integer(t, in, "n_retries")
			stats, err := score.Aggregate(metricsTable(t, in), records, total, retries)
			if err != nil {
				t.Fatal(err)
			}
			finished := parseTime(t, in, "finished_at")
			r := jobdir.Result{
				ID:           uuid.MustParse(text(t, in, "id")),
				StartedAt:    parseTime(t, in, "started_at"),
				UpdatedAt:    &finished,
				FinishedAt:   &finished,
				NTotalTrials: total,
				Stats:        stats,
			}
			jobtest.EqualText(t, string(r.AppendJSON(nil)), text(t, vector, "expected_text"))
		})
	}
	t.Logf("%d cases", len(names))
}

// TestLiveVectors follows events and compares the file after each.
func TestLiveVectors(t *testing.T) {
	t.Parallel()
	names := vectors.Dir(t, "harbor-jobs/live", "*.json")
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vector := jobtest.Decode(t, vectors.File(t, "harbor-jobs/live/"+name))
			in := jobtest.Member[*value.Object](t, vector, "input")
			want := jobtest.Member[value.List](t, vector, "expected_texts")
			started := parseTime(t, in, "started_at")
			live := score.NewLive(score.LiveConfig{
				ID:        uuid.MustParse(text(t, in, "id")),
				StartedAt: started,
				Now:       started,
				Total:     integer(t, in, "n_total_trials"),
				Retries:   integer(t, in, "n_retries"),
				Metrics:   metricsTable(t, in),
			})
			jobtest.EqualText(t, string(live.AppendJSON(nil)), string(want[0].(value.Str)))
			for i, e := range jobtest.Member[value.List](t, in, "events") {
				event := e.(*value.Object)
				at := parseTime(t, event, "timestamp")
				var err error
				switch kind := text(t, event, "event"); kind {
				case "start":
					err = live.Start(text(t, event, "trial_name"), at)
				case "cancel":
					live.Cancel(text(t, event, "trial_name"), at)
				case "end":
					doc, _ := event.Get("result")
					err = live.End(jobdir.RecordOf(parseTrial(t, doc)), at)
				default:
					t.Fatalf("unknown event %q", kind)
				}
				if err != nil {
					t.Fatal(err)
				}
				jobtest.EqualText(t, string(live.AppendJSON(nil)), string(want[i+1].(value.Str)))
			}
		})
	}
	t.Logf("%d cases", len(names))
}

// TestJobLoadVectors rewrites job results of every age.
func TestJobLoadVectors(t *testing.T) {
	t.Parallel()
	const dir = "harbor-jobs/job-load"
	names := vectors.Dir(t, dir, "*.json")
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vector := jobtest.Decode(t, vectors.File(t, dir+"/"+name))
			in, _ := vector.Get("input")
			r, err := jobdir.ParseResult(value.AppendDumps(nil, in, value.DumpsOptions{}))
			if err != nil {
				t.Fatal(err)
			}
			jobtest.EqualText(t, string(r.AppendJSON(nil)), text(t, vector, "expected_text"))
		})
	}
	t.Logf("%d cases", len(names))
}

// TestConfigVectors rewrites configurations, or finds what is wrong with them.
func TestConfigVectors(t *testing.T) {
	t.Parallel()
	const dir = "harbor-jobs/config"
	names := vectors.Dir(t, dir, "*.json")
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vector := jobtest.Decode(t, vectors.File(t, dir+"/"+name))
			in := jobtest.Member[*value.Object](t, vector, "input")
			host := hostEnv(t, in)
			c, _, err := jobdir.ParseConfig([]byte(text(t, in, "text")), jobdir.Format(text(t, in, "format")), time.Time{})
			if want, bad := vector.Get("expected_error"); bad {
				equalErrors(t, err, want.(*value.Object))
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := string(c.AppendJSON(nil, host))
			jobtest.EqualText(t, got, text(t, vector, "expected_text"))
			again, _, err := jobdir.ParseConfig([]byte(got), jobdir.JSON, time.Time{})
			if err != nil {
				t.Fatalf("reading back: %v", err)
			}
			jobtest.EqualText(t, string(again.AppendJSON(nil, host)), got)
			if !again.Equal(c, host) {
				t.Error("the configuration read back is not equal")
			}
		})
	}
	t.Logf("%d cases", len(names))
}

// TestNamePrefixVectors makes the part of trial names that comes from tasks.
func TestNamePrefixVectors(t *testing.T) {
	t.Parallel()
	list := jobtest.Member[value.List](t, jobtest.Decode(t, vectors.File(t, "harbor-jobs/names/names.json")), "trial_name_prefixes")
	for _, v := range list {
		task, want := text(t, v.(*value.Object), "task_id_name"), text(t, v.(*value.Object), "prefix")
		if got := namePrefix(task); got != want {
			t.Errorf("the trials of %q are called %q, want %q", task, got, want)
		}
	}
	t.Logf("%d cases", len(list))
}

func hostEnv(t *testing.T, in *value.Object) harbor.Lookup {
	env := jobtest.Member[*value.Object](t, in, "env")
	return func(name string) (string, bool) {
		v, ok := env.Get(name)
		if !ok {
			return "", false
		}
		return string(v.(value.Str)), true
	}
}

func equalErrors(t *testing.T, err error, want *value.Object) {
	t.Helper()
	var invalid *schema.Errors
	if !errors.As(err, &invalid) {
		t.Fatalf("got error %v, want %s", err, value.Repr(want))
	}
	list := jobtest.Member[value.List](t, want, "errors")
	if len(invalid.List) != len(list) {
		t.Fatalf("got %d errors, want %d:\n%v", len(invalid.List), len(list), err)
	}
	for i, w := range list {
		w := w.(*value.Object)
		var loc []string
		for _, elem := range jobtest.Member[value.List](t, w, "loc") {
			loc = append(loc, strings.Trim(value.Repr(elem), "'"))
		}
		got := invalid.List[i]
		if got.Loc.String() != strings.Join(loc, ".") || got.Type != text(t, w, "type") || got.Msg != text(t, w, "msg") {
			t.Errorf("error %d: got %s %s %q\nwant %s", i, got.Loc, got.Type, got.Msg, value.Repr(w))
		}
	}
}

// TestJobEvalsVectors runs whole jobs through the live and the final
// aggregation.
func TestJobEvalsVectors(t *testing.T) {
	t.Parallel()
	n := 0
	lines := bufio.NewScanner(bytes.NewReader(vectors.File(t, "rewards/job_evals.jsonl")))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		n++
		vector := jobtest.Decode(t, lines.Bytes())
		t.Run(text(t, vector, "id"), func(t *testing.T) {
			t.Parallel()
			jobEvals(t, vector)
		})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d cases", n)
}

func jobEvals(t *testing.T, vector *value.Object) {
	metrics := score.Metrics{}
	for _, pair := range jobtest.Member[value.List](t, vector, "metrics") {
		pair := pair.(value.List)
		metrics[string(pair[0].(value.Str))] = metricList(pair[1].(value.List))
	}
	var records []jobdir.Record
	for _, doc := range jobtest.Member[value.List](t, vector, "trials") {
		records = append(records, evalsRecord(t, doc.(*value.Object)))
	}
	want := jobtest.Member[*value.Object](t, vector, "want")
	live := score.NewLive(score.LiveConfig{Total: len(records), Metrics: metrics})
	err := runLive(live, records)
	if exception, fails := want.Get("error"); fails {
		equalException(t, err, string(exception.(value.Str)), text(t, want, "message"))
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	stats, err := score.Aggregate(metrics, records, len(records), 0)
	if err != nil {
		t.Fatal(err)
	}
	jobtest.EqualText(t, jobtest.Compact(live.Result().Stats.EvalsValue()), text(t, want, "last_live_evals_json"))
	jobtest.EqualText(t, jobtest.Compact(stats.EvalsValue()), text(t, want, "evals_json"))
	got := [3]int{stats.NCompletedTrials, stats.NErroredTrials, stats.NCancelledTrials}
	if w := [3]int{integer(t, want, "n_completed_trials"), integer(t, want, "n_errored_trials"), integer(t, want, "n_cancelled_trials")}; got != w {
		t.Errorf("got counts %v, want %v", got, w)
	}
}

// runLive lets trials end one by one and reads the headline after each, as a
// progress display does.
func runLive(live *score.Live, records []jobdir.Record) error {
	for _, r := range records {
		if err := live.Start(r.TrialName, jobdir.Time{}); err != nil {
			return err
		}
		if err := live.End(r, jobdir.Time{}); err != nil {
			return err
		}
		e, _ := live.Result().Stats.Evals.Get(r.EvalsKey())
		if _, err := score.Headline(e); err != nil {
			return err
		}
	}
	return nil
}

func equalException(t *testing.T, err error, exception, message string) {
	t.Helper()
	var typed interface{ ErrorType() string }
	if !errors.As(err, &typed) {
		t.Fatalf("got error %v, want %s: %s", err, exception, message)
	}
	if typed.ErrorType() != exception || !strings.HasSuffix(err.Error(), message) {
		t.Errorf("got %s in %q, want %s: %s", typed.ErrorType(), err, exception, message)
	}
}

func evalsRecord(t *testing.T, doc *value.Object) jobdir.Record {
	optional := func(key string) string {
		v, _ := doc.Get(key)
		s, _ := v.(value.Str)
		return string(s)
	}
	r := jobdir.Record{
		TrialName:     text(t, doc, "trial_name"),
		TaskName:      text(t, doc, "task"),
		AgentName:     text(t, doc, "agent"),
		ModelName:     optional("model"),
		Source:        optional("source"),
		ExceptionType: optional("exception_type"),
	}
	v, _ := doc.Get("verifier_result")
	if result, ok := v.(*value.Object); ok {
		if pairs, ok := result.Get("rewards"); ok && !value.IsNull(pairs) {
			r.Rewards = &reward.Rewards{}
			for _, p := range pairs.(value.List) {
				p := p.(value.List)
				r.Rewards.Set(key(t, p[0]), vectors.Number(t, p[1].(*value.Object)))
			}
		}
	}
	return r
}

// key reads a reward name, which may be given as UTF-16 code units.
func key(t *testing.T, v value.Value) string {
	t.Helper()
	if obj, ok := v.(*value.Object); ok {
		quoted := []byte{'"'}
		for _, unit := range jobtest.Member[value.List](t, obj, "u16") {
			n, _ := unit.(value.Int).Int64()
			quoted = fmt.Appendf(quoted, "\\u%04x", n)
		}
		decoded, err := value.Decode(append(quoted, '"'))
		if err != nil {
			t.Fatal(err)
		}
		v = decoded
	}
	return string(v.(value.Str))
}

func parseTrial(t *testing.T, doc value.Value) *jobdir.TrialResult {
	t.Helper()
	r, err := jobdir.ParseTrialResult(value.AppendDumps(nil, doc, value.DumpsOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	return &r
}

func metricsTable(t *testing.T, in *value.Object) score.Metrics {
	metrics := score.Metrics{}
	for name, list := range jobtest.Member[*value.Object](t, in, "metrics").All() {
		metrics[name] = metricList(list.(value.List))
	}
	return metrics
}

func metricList(list value.List) []score.Metric {
	var out []score.Metric
	for _, kind := range list {
		out = append(out, score.Metric{Type: jobdir.MetricType(kind.(value.Str))})
	}
	return out
}

func text(t *testing.T, obj *value.Object, key string) string {
	t.Helper()
	return string(jobtest.Member[value.Str](t, obj, key))
}

func integer(t *testing.T, obj *value.Object, key string) int {
	t.Helper()
	n, _ := jobtest.Member[value.Int](t, obj, key).Int64()
	return int(n)
}

func parseTime(t *testing.T, obj *value.Object, key string) jobdir.Time {
	t.Helper()
	at, err := jobdir.ParseTime(text(t, obj, key))
	if err != nil {
		t.Fatal(err)
	}
	return at
}
