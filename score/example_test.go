package score_test

import (
	"context"
	"fmt"

	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

// Trials that failed count as 0 in the mean, but not among the trials with a
// reward.
func ExampleAggregate() {
	passed := &reward.Rewards{}
	passed.Set("reward", value.NewInt(1))
	records := []jobdir.Record{
		{TrialName: "a__1", TaskName: "a", AgentName: "oracle", Rewards: passed},
		{TrialName: "b__1", TaskName: "b", AgentName: "oracle", ExceptionType: "AgentTimeoutError"},
	}
	stats, err := score.Aggregate(score.NewMetrics(nil, nil), records, len(records), 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for key, e := range stats.Evals.All() {
		headline, _ := score.Headline(e)
		fmt.Println(key, headline, e.NTrials, "scored,", e.NErrors, "errored")
	}
	// Output: oracle__adhoc Mean: 0.500 1 scored, 1 errored
}

// A job directory is aggregated again and compared with its stored result.
func ExampleRescore() {
	r, err := score.Rescore(context.Background(), jobtest.Fixture("multi-oracle"), score.RescoreOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(r.Records), "trials,", len(r.Check()), "differences")
	// Output: 2 trials, 0 differences
}
