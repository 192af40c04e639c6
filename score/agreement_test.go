package score_test

import (
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

func one(x value.Number) *reward.Rewards {
	r := &reward.Rewards{}
	r.Set("reward", x)
	return r
}

func TestFlakyTasks(t *testing.T) {
	t.Parallel()
	record := func(task, agent, dataset string, r *reward.Rewards, exception string) jobdir.Record {
		return jobdir.Record{TaskName: task, AgentName: agent, Source: dataset, Rewards: r, ExceptionType: exception}
	}
	records := []jobdir.Record{
		record("same", "x", "", one(value.Float(1)), ""),
		record("flaky", "x", "", one(value.Float(1)), ""),
		record("same", "x", "", one(value.NewInt(1)), ""), // 1 and 1.0 are the same
		record("flaky", "x", "", nil, "ValueError"),
		record("flaky", "y", "", one(value.Float(0)), ""),              // another agent
		record("same", "x", "set", one(value.Float(0)), ""),            // another dataset
		record("same", "x", "", one(value.Float(0)), "CancelledError"), // does not count
	}
	got := score.FlakyTasks(records)
	if len(got) != 1 || got[0].Task != "flaky" || got[0].Group != "x__adhoc" || len(got[0].Rewards) != 2 || got[0].Rewards[1] != nil {
		t.Errorf("got %+v", got)
	}
}

func TestTotalUsage(t *testing.T) {
	t.Parallel()
	cost := 0.25
	n := value.NewInt(7)
	total := score.TotalUsage([]jobdir.Record{{}, {Usage: jobdir.Usage{CostUSD: &cost, NInputTokens: &n}}, {Usage: jobdir.Usage{CostUSD: &cost}}})
	if total.CostUSD == nil || *total.CostUSD != 0.5 || total.NInputTokens == nil || total.NInputTokens.String() != "7" || total.NOutputTokens != nil {
		t.Errorf("got %+v", total)
	}
}

// TestAgreementIsOfPairs holds the counting against a comparison of all pairs,
// by Python's rules for equal numbers.
func TestAgreementIsOfPairs(t *testing.T) {
	t.Parallel()
	big, err := value.ParseInt("9007199254740993") // 2^53 + 1, which no double is
	if err != nil {
		t.Fatal(err)
	}
	two := func(a, b value.Number) *reward.Rewards {
		r := &reward.Rewards{}
		r.Set("a", a)
		r.Set("b", b)
		return r
	}
	other := &reward.Rewards{} // two(0, 1) in another order
	other.Set("b", value.NewInt(1))
	other.Set("a", value.Float(math.Copysign(0, -1)))
	choices := []*reward.Rewards{
		nil, {}, one(value.NewInt(1)), one(value.Float(1)), one(value.Float(0.1)), one(value.NewInt(0)), one(value.Float(math.Copysign(0, -1))),
		one(value.Float(math.NaN())), one(value.Float(math.Inf(1))), one(value.Float(math.Inf(-1))), one(big), one(value.Float(9007199254740992)),
		one(value.Float(1e300)), two(value.NewInt(0), value.NewInt(1)), other, two(value.NewInt(1), value.NewInt(0)),
	}
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.SampledFrom(choices), 2, 12).Draw(t, "attempts")
		records := make([]jobdir.Record, len(list))
		differing := 0
		for i, x := range list {
			records[i] = jobdir.Record{TaskName: "t", AgentName: "a", Rewards: x}
			for _, y := range list[:i] {
				if !equalRewards(x, y) {
					differing++
				}
			}
		}
		pairs := len(list) * (len(list) - 1) / 2
		got := score.AgreementOf(records)
		if got.Repeated != 1 || (got.Agreeing == 1) != (differing == 0) || got.FlakeRate != float64(differing)/float64(pairs) {
			t.Fatalf("got %+v, want %d of %d pairs to differ", got, differing, pairs)
		}
		if flaky := score.FlakyTasks(records); len(flaky) != got.Flaky() {
			t.Fatalf("%d flaky tasks, %+v", len(flaky), got)
		}
	})
}

// equalRewards compares number by number.
func equalRewards(a, b *reward.Rewards) bool {
	if (a == nil) != (b == nil) || a.Len() != b.Len() {
		return false
	}
	isNaN := func(x value.Number) bool { f, ok := x.(value.Float); return ok && math.IsNaN(float64(f)) }
	for name, x := range a.All() {
		y, ok := b.Get(name)
		if !ok {
			return false
		}
		if c, ordered := value.Compare(x, y); (!ordered || c != 0) && (!isNaN(x) || !isNaN(y)) {
			return false
		}
	}
	return true
}

// BenchmarkStatistics makes the statistics of many attempts at one task.
func BenchmarkStatistics(b *testing.B) {
	perTrial := map[int]float64{}
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			records := make([]jobdir.Record, n)
			for i := range records {
				records[i] = jobdir.Record{TrialName: strconv.Itoa(i), TaskName: "t", AgentName: "a", Rewards: one(value.Float(float64(i%17) / 16))}
			}
			for b.Loop() {
				if s := score.NewStatistics(records, n); s.WithReward != n || s.Groups[0].Agreement.Agreeing != 0 {
					b.Fatalf("got %+v", s)
				}
			}
			perOp := b.Elapsed().Seconds() / float64(b.N)
			perTrial[n] = perOp / float64(n)
			b.ReportMetric(perOp, "s/job")
			if t1, ok := perTrial[1_000]; ok && n > 1_000 {
				b.ReportMetric(1+math.Log(perTrial[n]/t1)/math.Log(float64(n)/1_000), "growth-exponent")
			}
		})
	}
}
