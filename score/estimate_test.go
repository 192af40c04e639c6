package score_test

import (
	"math"
	"testing"

	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/score"
)

func TestEstimateMean(t *testing.T) {
	t.Parallel()
	scanned, err := scan.Dir(t.Context(), jobtest.Fixture("mixed-oracle"))
	if err != nil {
		t.Fatal(err)
	}
	var records []jobdir.Record
	for _, r := range scanned.Records {
		records = append(records, r.Record)
	}
	e, err := score.EstimateMean(records, "oracle__mixed", "")
	if err != nil {
		t.Fatal(err)
	}
	// Tasks with the means 0, 0.1, 1/3 and 1: standard error 0.225, and t
	// with 3 degrees of freedom 3.18244...
	if e.Tasks != 4 || e.Trials != 8 || e.Scored != 6 {
		t.Errorf("counts %+v", e)
	}
	// The interval would be 0.3583 ± 0.716, and scores are between 0 and 1.
	for name, pair := range map[string][2]float64{
		"mean": {e.Mean, 0.35833333333333334}, "standard error": {e.StandardError, 0.225}, "low": {e.Low, 0}, "high": {e.High, 1},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-6 {
			t.Errorf("%s %v, want %v", name, pair[0], pair[1])
		}
	}
	one, err := score.EstimateMean(records[:1], "", "")
	if err != nil || one.Tasks != 1 || !math.IsNaN(one.Low) {
		t.Errorf("one trial: %+v, %v", one, err)
	}
	none, err := score.EstimateMean(nil, "", "")
	if err != nil || !math.IsNaN(none.Mean) {
		t.Errorf("no trial: %+v, %v", none, err)
	}
}
