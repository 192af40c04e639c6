package report_test

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/report"
)

// The trials behind an outcome are those that the result file lists.
func TestOutcome(t *testing.T) {
	t.Parallel()
	o := report.ReadOutcome(harborJobs + "/mixed-oracle/result.json")
	if o.Outcome.Status != outcome.Failed || len(o.ErroredTrials) != 2 || len(o.Unwritable) != 0 || len(o.Sources) != len(o.Samples) || len(o.Sources) == 0 {
		t.Fatalf("%+v", o)
	}
	for _, e := range o.ErroredTrials {
		if e.Exception != "RewardFileNotFoundError" || e.Reason != "harbor_reward_missing" {
			t.Errorf("%+v", e)
		}
	}
	if s := o.Sources[0]; !s.Known || s.Trial != "" || s.Rewarded != 6 || len(s.Unscored) != 2 {
		t.Errorf("the score comes from %+v", s)
	}

	dir := t.TempDir()
	const before, after = `{"id": "7bf0f3a4-2f33-4f49-8d5e-0d2a7f1c8a11", "started_at": "2026-06-09T10:00:00", "n_total_trials": 2, "stats": {"n_completed_trials": 2, "evals": {"x": {"n_trials": 2, "metrics": [`, `], "reward_stats": {"reward": {"0.5": ["a"], "1.0": ["b", "c"], "nan": ["d"]}}}}}}`
	best := filepath.Join(dir, "best.json")
	jobtest.Write(t, best, []byte(before+`{"max": 1.0}`+after))
	o = report.ReadOutcome(best)
	if len(o.Sources) != 1 || o.Sources[0].Trial != "b" {
		t.Errorf("the highest reward is from %+v", o.Sources)
	}
	if len(o.Unwritable) != 1 || o.Unwritable[0].Value != "nan" || !slices.Equal(o.Unwritable[0].Trials, []string{"d"}) {
		t.Errorf("rewards without a number in JSON: %+v", o.Unwritable)
	}

	// An outcome needs less of a result than its trials do.
	partial := filepath.Join(dir, "partial.json")
	jobtest.Write(t, partial, []byte(`{"n_total_trials": 1, "stats": {"n_completed_trials": 1, "evals": {"x": {"metrics": [{"mean": 0.5}]}}}}`))
	o = report.ReadOutcome(partial)
	if o.Err != nil || math.Abs(o.Outcome.Score-0.5) > 0 || len(o.Sources) != 1 || o.Sources[0].Known || len(o.ErroredTrials) != 0 {
		t.Errorf("of a part of a result: %+v", o)
	}
	o = report.ReadOutcome(filepath.Join(dir, "none.json"))
	if o.Outcome.Reason != outcome.ResultMissing || o.Err == nil || len(o.Sources) != 0 {
		t.Errorf("without a result: %+v", o)
	}
}
