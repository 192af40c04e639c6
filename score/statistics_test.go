package score_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

func rewardOf(x float64) *reward.Rewards {
	r := &reward.Rewards{}
	r.Set("reward", value.Float(x))
	return r
}

// attempt is a trial of a task: a score, or without one an exception.
func attempt(task string, x float64, exception string) jobdir.Record {
	r := jobdir.Record{TaskName: task, AgentName: "a", ExceptionType: exception}
	if !math.IsInf(x, -1) {
		r.Rewards = rewardOf(x)
	}
	return r
}

var none = math.Inf(-1)

func TestStatisticsCounts(t *testing.T) {
	t.Parallel()
	records := []jobdir.Record{
		attempt("t1", 1, ""), attempt("t1", 1, "AgentTimeoutError"), attempt("t1", none, "RuntimeError"),
		attempt("t2", none, ""), attempt("t2", none, "CancelledError"), attempt("t3", 0, ""),
	}
	s := score.NewStatistics(records, 8)
	want := map[jobdir.Class]int{
		jobdir.ClassScored: 2, jobdir.ClassErroredWithReward: 1, jobdir.ClassErroredWithoutReward: 1, jobdir.ClassUnscored: 1, jobdir.ClassCancelled: 1, jobdir.ClassPending: 2,
	}
	for _, c := range jobdir.Classes() {
		if s.Outcomes[c] != want[c] {
			t.Errorf("%s: %d, want %d", c, s.Outcomes[c], want[c])
		}
	}
	if s.Planned != 8 || s.WithReward != 3 || s.Coverage() != 0.375 || len(s.Groups) != 1 {
		t.Errorf("%+v", s)
	}
	g := s.Groups[0]
	if g.Group != "a__adhoc" || g.Trials != 6 || g.WithReward != 3 || len(g.Means) != 1 || g.Means[0].Scored != 3 {
		t.Errorf("%+v", g)
	}
	// Of t1, two of three pairs differ; t2 has one attempt that was not
	// cancelled.
	if a := g.Agreement; a.Repeated != 1 || a.Agreeing != 0 || a.FlakeRate != 2.0/3 {
		t.Errorf("%+v", a)
	}
}

// A job with several reward names has one estimate for each, as it has metrics.
func TestStatisticsSeveralRewards(t *testing.T) {
	t.Parallel()
	both := attempt("t1", 1, "")
	both.Rewards.Set("brevity", value.NewInt(1))
	s := score.NewStatistics([]jobdir.Record{both, attempt("t2", 1, "")}, 2)
	means := s.Groups[0].Means
	if len(means) != 2 || means[0].Name != "brevity" || means[0].Mean != 0.5 || means[1].Name != "reward" || means[1].Mean != 1 {
		t.Errorf("%+v", means)
	}
	empty := score.NewStatistics(nil, 0)
	if !math.IsNaN(empty.Coverage()) || len(empty.Groups) != 0 {
		t.Errorf("%+v", empty)
	}
}

func TestEstimateMethods(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		scores    []float64
		method    score.Method
		low, high float64
	}{
		// (alpha/2)^(1/n) for n successes of n.
		{"all solved", []float64{1, 1, 1, 1}, score.MethodBinomial, math.Pow(0.025, 0.25), 1},
		{"none solved", []float64{0, 0, 0, 0}, score.MethodBinomial, 0, 1 - math.Pow(0.025, 0.25)},
		// Values of Clopper and Pearson for 5 of 10.
		{"all a half", slices.Repeat([]float64{0.5}, 10), score.MethodBinomial, 0.18708602844739, 0.81291397155261},
		// t with 1 degree of freedom is 12.706; the ends stay in range.
		{"two", []float64{0, 1}, score.MethodStudent, 0, 1},
		{"out of range", []float64{0, 2}, score.MethodStudent, 1 - 12.7062047364, 1 + 12.7062047364},
		{"equal and out of range", []float64{5, 5}, score.MethodNone, math.NaN(), math.NaN()},
		{"one", []float64{1}, score.MethodNone, math.NaN(), math.NaN()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var records []jobdir.Record
			for i, x := range tt.scores {
				records = append(records, attempt(fmt.Sprint(i), x, ""))
			}
			e, err := score.EstimateMean(records, "", "")
			if err != nil {
				t.Fatal(err)
			}
			if e.Method != tt.method || !same(e.Low, tt.low) || !same(e.High, tt.high) {
				t.Errorf("%s [%v, %v], want %s [%v, %v]", e.Method, e.Low, e.High, tt.method, tt.low, tt.high)
			}
		})
	}
}

func same(x, y float64) bool {
	return math.Abs(x-y) < 1e-9 || math.IsNaN(x) && math.IsNaN(y)
}

// What must hold for any job: the classes add up, the interval holds the mean
// and stays in range, and neither the order of the trials nor a second copy of
// every attempt changes it.
func TestStatisticsProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var records []jobdir.Record
		mayCancel := rapid.SampledFrom([]string{"", "CancelledError"}).Draw(t, "may cancel")
		for range rapid.IntRange(0, 20).Draw(t, "n") {
			score := rapid.SampledFrom([]float64{none, 0, 0.25, 0.5, 1}).Draw(t, "score")
			exception := rapid.SampledFrom([]string{"", "", "", "RuntimeError", mayCancel}).Draw(t, "exception")
			records = append(records, attempt(fmt.Sprint(rapid.IntRange(0, 4).Draw(t, "task")), score, exception))
		}
		planned := rapid.IntRange(0, 30).Draw(t, "planned")
		s := score.NewStatistics(records, planned)
		sum := 0
		for _, c := range jobdir.Classes() {
			sum += s.Outcomes[c]
		}
		if sum != s.Planned || s.WithReward > len(records) || s.Planned < planned {
			t.Fatalf("%d in classes, %+v", sum, s)
		}
		shuffled := slices.Clone(records)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		again := score.NewStatistics(shuffled, planned)
		twice := score.NewStatistics(slices.Concat(records, records), 2*planned)
		for i, g := range s.Groups {
			checkEstimate(t, g.Means[0].Estimate, g.Outcomes[jobdir.ClassCancelled] > 0)
			if x, y := g.Means[0].Estimate, again.Groups[i].Means[0].Estimate; fmt.Sprint(x) != fmt.Sprint(y) {
				t.Fatalf("in another order %+v, not %+v", y, x)
			}
			if x, y := g.Means[0], twice.Groups[i].Means[0]; math.Abs(x.Mean-y.Mean) > 1e-12 || x.Low-y.Low > 1e-9 || y.High-x.High > 1e-9 {
				t.Fatalf("with every attempt twice %+v, not %+v", y, x)
			}
			a := g.Agreement
			if a.Agreeing > a.Repeated || a.Repeated > 0 && (a.FlakeRate < 0 || a.FlakeRate > 1 || (a.FlakeRate == 0) != (a.Agreeing == a.Repeated)) {
				t.Fatalf("%+v", a)
			}
		}
	})
}

func checkEstimate(t *rapid.T, e score.Estimate, cancelled bool) {
	if e.Tasks < 2 || cancelled {
		if e.Method != score.MethodNone || !math.IsNaN(e.Low) || !math.IsNaN(e.High) || !math.IsNaN(e.StandardError) {
			t.Fatalf("an interval of one task, or of cancelled trials: %+v", e)
		}
		return
	}
	if !(0 <= e.Low && e.Low <= e.Mean && e.Mean <= e.High && e.High <= 1) || e.High-e.Low == 0 {
		t.Fatalf("%+v", e)
	}
}

func TestSameRewards(t *testing.T) {
	t.Parallel()
	int1 := &reward.Rewards{}
	int1.Set("reward", value.NewInt(1))
	empty := &reward.Rewards{}
	for i, tt := range []struct {
		a, b *reward.Rewards
		same bool
	}{
		{nil, nil, true}, {nil, empty, false}, {int1, rewardOf(1), true}, {rewardOf(math.NaN()), rewardOf(math.NaN()), true},
		{rewardOf(0), nil, false}, {rewardOf(0), rewardOf(0.5), false}, {rewardOf(0), empty, false},
	} {
		if got := score.SameRewards(tt.a, tt.b); got != tt.same {
			t.Errorf("case %d: %v", i, got)
		}
	}
}

// Three tasks, of which one was not solved in one of two attempts, and one has
// no reward.
func ExampleNewStatistics() {
	records := []jobdir.Record{
		attempt("a", 1, ""), attempt("a", 1, ""), attempt("b", 1, ""), attempt("b", 0, ""), attempt("c", none, "RuntimeError"),
	}
	s := score.NewStatistics(records, 6)
	fmt.Printf("coverage %.2f, %d pending\n", s.Coverage(), s.Outcomes[jobdir.ClassPending])
	g := s.Groups[0]
	mean := g.Means[0]
	fmt.Printf("mean %.2f over %d tasks, %s interval %.2f to %.2f\n", mean.Mean, mean.Tasks, mean.Method, mean.Low, mean.High)
	fmt.Printf("attempts agree on %d of %d tasks, flake rate %.2f\n", g.Agreement.Agreeing, g.Agreement.Repeated, g.Agreement.FlakeRate)
	// Output:
	// coverage 0.67, 1 pending
	// mean 0.50 over 3 tasks, student-t interval 0.00 to 1.00
	// attempts agree on 1 of 2 tasks, flake rate 0.50
}
