package score_test

import (
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/score"
)

func TestPolicy(t *testing.T) {
	t.Parallel()
	r, err := score.Rescore(t.Context(), jobtest.Fixture("mixed-oracle"), score.RescoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The tasks score 0 (without rewards), 1, 0.1 and 1/3, twice each.
	for _, tt := range []struct {
		name    string
		policy  score.Policy
		want    float64
		kept    int
		problem string
	}{
		{"as it comes", score.Policy{}, 0.35833333333333334, 4, ""},
		{"the best task", score.Policy{Keep: outcome.Keep{Policy: outcome.KeepBest}}, 1, 1, ""},
		{"but the two lowest", score.Policy{Aggregation: outcome.BestOfK, Keep: outcome.Keep{Policy: outcome.DropLowest, Drop: 2}}, 2.0 / 3, 2, ""},
		{"from a third on", score.Policy{Keep: outcome.Keep{Policy: outcome.KeepAboveBound, Threshold: 1.0 / 3}}, 2.0 / 3, 2, ""},
		{"fixed before", score.Policy{Fixed: true, Aggregation: outcome.MeanOfAttempts, Keep: outcome.Keep{Policy: outcome.KeepAll}}, 0.35833333333333334, 4, ""},
		{"no such policy", score.Policy{Keep: outcome.Keep{Policy: "some"}}, 0, 0, "unknown keep policy"},
		{"no such aggregation", score.Policy{Aggregation: "median"}, 0, 0, "unknown per-task aggregation mode"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.policy.Of(r.Trials())
			if tt.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tt.problem) {
					t.Errorf("got %v, want %q", err, tt.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Score != tt.want || len(got.Kept) != tt.kept || got.Total != 4 || got.Passed != 1 || len(got.Tasks) != 4 {
				t.Errorf("got %+v, want score %v of %d tasks", got, tt.want, tt.kept)
			}
			if tt.policy.Fixed && (got.PassedTrials != 2 || got.Tasks[0].Task > got.Tasks[1].Task) {
				t.Errorf("got %+v, want 2 trials that passed, and sorted tasks", got)
			}
		})
	}
}

func TestPolicyWantsOneAgent(t *testing.T) {
	t.Parallel()
	r, err := score.Rescore(t.Context(), jobtest.Fixture("mixed-oracle"), score.RescoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.Records[3].ModelName = "another"
	if got, err := (score.Policy{}).Of(r.Trials()); err == nil || !strings.Contains(err.Error(), "several agents") {
		t.Errorf("got %+v, %v", got, err)
	}
}
