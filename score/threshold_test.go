package score_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

// metrics is an object of names and values, by turns.
func metrics(namesAndValues ...any) *value.Object {
	o := value.NewObject(len(namesAndValues) / 2)
	for i := 0; i < len(namesAndValues); i += 2 {
		o.Set(namesAndValues[i].(string), namesAndValues[i+1].(value.Value))
	}
	return o
}

func TestBelowThreshold(t *testing.T) {
	t.Parallel()
	var stats jobdir.Stats
	stats.Evals.Set("oracle__b", &jobdir.Eval{Metrics: []*value.Object{
		metrics("mean", value.Float(0.5), "note", value.Str("0")), metrics("max", value.NewInt(1), "min", value.NewInt(0)),
	}})
	stats.Evals.Set("oracle__a", &jobdir.Eval{Metrics: []*value.Object{metrics("mean", value.Float(math.NaN()), "max", value.Null{})}})
	stats.Evals.Set("nop__a", &jobdir.Eval{})
	for _, c := range []struct {
		threshold float64
		want      []string
	}{
		{-1, []string{"oracle__a mean nan"}},
		{0.5, []string{"oracle__b min 0", "oracle__a mean nan"}},
		{0.75, []string{"oracle__b mean 0.5", "oracle__b min 0", "oracle__a mean nan"}},
	} {
		var got []string
		for _, s := range score.BelowThreshold(&stats, c.threshold) {
			got = append(got, s.Group+" "+s.Metric+" "+value.Repr(s.Value))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("below %g (-want +got):\n%s", c.threshold, diff)
		}
	}
}

func TestCoverage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		withReward, total int
		want              float64
	}{{0, 0, 1}, {0, 4, 0}, {3, 4, 0.75}, {4, 4, 1}} {
		if got := score.Coverage(c.withReward, c.total); got != c.want {
			t.Errorf("%d of %d: %g, want %g", c.withReward, c.total, got, c.want)
		}
	}
}
