package outcome_test

import (
	"testing"

	"github.com/proctor-run/proctor/internal/pyvalue"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/outcome"
)

func TestAttemptVectors(t *testing.T) {
	t.Parallel()
	vectors.Each(t, "outcome/attempt.jsonl", func(t *testing.T, c *pyvalue.Object) {
		switch op := vectors.Str(c, "op"); op {
		case "trial":
			data := pyvalue.AppendDumps(nil, vectors.Get(c, "result"), pyvalue.DumpsOptions{})
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

func checkFinalize(t *testing.T, c *pyvalue.Object) {
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
		fields := v.(pyvalue.List)
		reason, _ := fields[3].(pyvalue.Str)
		r := outcome.TrialRecord{Name: string(fields[0].(pyvalue.Str)), Status: outcome.TrialStatus(fields[1].(pyvalue.Str)), Reason: string(reason)}
		if !pyvalue.IsNull(fields[2]) {
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

// finalized lays out what came of an attempt as the vectors do.
func finalized(f outcome.Finalized) *pyvalue.Object {
	trials := pyvalue.List{}
	for _, t := range f.Trials {
		var score pyvalue.Value = pyvalue.Null{}
		if t.Score != nil {
			score = pyvalue.Float(*t.Score)
		}
		trials = append(trials, pyvalue.List{pyvalue.Str(t.Name), pyvalue.Str(t.Status), score})
	}
	final := int64(0)
	if f.Final {
		final = 1
	}
	var reason pyvalue.Value = pyvalue.Null{}
	if f.OutcomeReason != "" {
		reason = pyvalue.Str(f.OutcomeReason)
	}
	obj := &pyvalue.Object{}
	obj.Set("trials", trials)
	obj.Set("is_final", pyvalue.NewInt(final))
	obj.Set("attempt_status", pyvalue.Str(f.Status))
	obj.Set("attempt_score", pyvalue.Float(f.Score))
	obj.Set("attempt_error", pyvalue.Str(f.Error))
	obj.Set("outcome_status", pyvalue.Str(f.Outcome))
	obj.Set("outcome_score", pyvalue.Float(f.OutcomeScore))
	obj.Set("outcome_reason_code", reason)
	return obj
}
