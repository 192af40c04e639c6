package job_test

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// A configuration becomes a plan: attempt outermost, then task, then agent.
func ExamplePlan() {
	c, _, err := job.ParseConfig([]byte("{job_name: demo, n_attempts: 2, agents: [{name: oracle}, {name: nop}]}"), job.YAML, time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	path := "tasks/hello"
	tasks := []job.Task{{Config: trial.TaskConfig{Path: &path}}}
	first := func(int) int { return 0 } // use rand.IntN
	planned, err := job.Plan(c, uuid.New(), tasks, first)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range planned {
		fmt.Println(p.TrialsDir, p.TrialName, *p.Agent.Name)
	}
	// Output:
	// jobs/demo hello__2222222 oracle
	// jobs/demo hello__2222222 nop
	// jobs/demo hello__2222222 oracle
	// jobs/demo hello__2222222 nop
}

// Trials that failed count as 0 in the mean, but not among the trials with a
// reward.
func ExampleAggregate() {
	passed := &reward.Rewards{}
	passed.Set("reward", value.NewInt(1))
	records := []job.Record{
		{TrialName: "a__1", TaskName: "a", AgentName: "oracle", Rewards: passed},
		{TrialName: "b__1", TaskName: "b", AgentName: "oracle", ExceptionType: "AgentTimeoutError"},
	}
	stats, err := job.Aggregate(job.NewMetrics(nil, nil), records, len(records), 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for key, e := range stats.Evals.All() {
		headline, _ := e.Headline()
		fmt.Println(key, headline, e.NTrials, "scored,", e.NErrors, "errored")
	}
	// Output: oracle__adhoc Mean: 0.500 1 scored, 1 errored
}

// A job directory is aggregated again and compared with its stored result.
func ExampleRescore() {
	r, err := job.Rescore(context.Background(), "testdata/jobs/multi-oracle", job.RescoreOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(r.Records), "trials,", len(r.Check()), "differences")
	// Output: 2 trials, 0 differences
}
