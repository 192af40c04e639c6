package score_test

import (
	"testing"

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
