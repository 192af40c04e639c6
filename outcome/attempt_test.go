package outcome_test

import (
	"testing"

	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/value"
)

func TestAttemptVectors(t *testing.T) {
	t.Parallel()
	vectors.Each(t, "outcome/attempt.jsonl", func(t *testing.T, c *value.Object) {
		switch op := vectors.Str(c, "op"); op {
		case "trial":
			data := value.AppendDumps(nil, vectors.Get(c, "result"), value.DumpsOptions{})
			got := outcome.ReadTrial(data, "task", "name")
			if got.Score == nil {
				t.Fatalf("got %+v", got)
			}
			equalFloat(t, "score", *got.Score, float(t, vectors.Get(c, "score")))
			if string(got.Status) != vectors.Str(c, "status") {
				t.Errorf("status: got %s, want %s", got.Status, vectors.Str(c, "status"))
			}
		case "finalize":
			checkFinalize(t, c)
		default:
			t.Fatalf("no op %q", op)
		}
	})
}

func checkFinalize(t *testing.T, c *value.Object) {
	t.Helper()
	a := outcome.Attempt{
		Task:        "<task>",
		Number:      vectors.Int(c, "task_retry_number"),
		Aggregation: outcome.Aggregation(vectors.Str(c, "per_task_aggregation")),
		Host: outcome.Normalized{
			Status: outcome.Status(vectors.Str(c, "normalized_status")),
			Score:  float(t, vectors.Get(c, "normalized_score")),
			Reason: outcome.Code(vectors.Str(c, "reason_code")),
		},
	}
	for _, v := range vectors.List(c, "trials") {
		fields := v.(value.List)
		reason, _ := fields[3].(value.Str)
		r := outcome.TrialRecord{Name: string(fields[0].(value.Str)), Status: outcome.TrialStatus(fields[1].(value.Str)), Reason: string(reason)}
		if !value.IsNull(fields[2]) {
			score := float(t, fields[2])
			r.Score = &score
		}
		a.Trials = append(a.Trials, r)
	}
	if c.Has("expected_trial_count") {
		n := vectors.Int(c, "expected_trial_count")
		a.Expected = &n
	}
	got, err := a.Finalize()
	want := vectors.Object(c, "expect")
	if want.Has("raises") {
		raised(t, err, vectors.Str(want, "raises"), "")
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "finalized", finalized(got), want)
}

// finalized lays out the outcome of an attempt as the vectors do.
func finalized(f outcome.Finalized) *value.Object {
	trials := value.List{}
	for _, t := range f.Trials {
		var score value.Value = value.Null{}
		if t.Score != nil {
			score = value.Float(*t.Score)
		}
		trials = append(trials, value.List{value.Str(t.Name), value.Str(t.Status), score})
	}
	final := int64(0)
	if f.Final {
		final = 1
	}
	var reason value.Value = value.Null{}
	if f.OutcomeReason != "" {
		reason = value.Str(f.OutcomeReason)
	}
	obj := &value.Object{}
	obj.Set("trials", trials)
	obj.Set("is_final", value.NewInt(final))
	obj.Set("attempt_status", value.Str(f.Status))
	obj.Set("attempt_score", value.Float(f.Score))
	obj.Set("attempt_error", value.Str(f.Error))
	obj.Set("outcome_status", value.Str(f.Outcome))
	obj.Set("outcome_score", value.Float(f.OutcomeScore))
	obj.Set("outcome_reason_code", reason)
	return obj
}
