package outcome_test

import (
	"fmt"

	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

func ExampleOf() {
	o := outcome.Of([]byte(`{
		"n_total_trials": 3,
		"stats": {
			"n_completed_trials": 3, "n_errored_trials": 0,
			"evals": {"oracle__adhoc": {"metrics": [{"mean": 0.6666666666666666}]}}
		}
	}`))
	line, err := o.Line()
	fmt.Println(line, err)
	// Output: BASE_BENCHMARK_RESULT={"reason_code": null, "resolved": 2, "score": 0.6666666666666666, "status": "completed", "total": 3} <nil>
}

func ExampleExplain() {
	x := outcome.Explain([]byte(`{
		"n_total_trials": 2,
		"stats": {"n_completed_trials": 2, "evals": {"oracle__adhoc": {"metrics": [{"correctness": 0.5, "speed": 0.75}]}}}
	}`))
	for _, s := range x.Samples {
		fmt.Println(s.Group, s.Key, s.Value)
	}
	fmt.Println(x.Outcome.Score, x.Product, x.Outcome.Resolved)
	// Output:
	// oracle__adhoc correctness 0.5
	// oracle__adhoc speed 0.75
	// 0.625 1.25 1
}

func ExampleRun_Normalize() {
	// One of two trials errored: the producer says so, and still has a score.
	run := outcome.Run{Stdout: `working…
BASE_BENCHMARK_RESULT={"reason_code": null, "resolved": 1, "score": 0.5, "status": "failed", "total": 2}
`}
	n, err := run.Normalize()
	fmt.Println(n.Status, n.Score, n.Reason, err)
	// Output: failed 0 harbor_result_invalid <nil>
}

func ExampleReasonOf() {
	err := fmt.Errorf("verifying: %w", &reward.Error{Kind: reward.NotFound, Message: "No reward file found at a or b"})
	fmt.Println(outcome.ReasonOf(err))
	fmt.Println(outcome.NormalizeReason("No reward file found at a or b")) // the text alone says less
	// Output:
	// harbor_reward_missing
	// no_reward_file_found_at_a_or_b
}

func ExampleClassify() {
	for attempt := 1; attempt <= outcome.MaxAttempts; attempt++ {
		code, retry := outcome.Classify("asyncio.exceptions.CancelledError", attempt, outcome.MaxAttempts)
		fmt.Println(attempt, code, retry)
	}
	// Output:
	// 1 harbor_cancelled_error true
	// 2 harbor_cancelled_error true
	// 3 harbor_cancelled_error false
}

func ExampleEmit() {
	payload := outcome.Missing().Object()
	payload.Set("score", value.Float(1.5))
	_, err := outcome.Emit(payload)
	fmt.Println(err)
	// Output: score: 1.5 > maximum 1.0
}

func ExampleKeep() {
	s, err := outcome.Keep{Policy: outcome.DropLowest, Drop: 2}.Of([]float64{0.25, 0.75, 0.125, 0.5})
	fmt.Println(s.Kept, s.Score, s.Total, err)
	// Output: [0.75 0.5] 0.625 4 <nil>
}

func ExampleAggregation() {
	groups := outcome.GroupByTask([]outcome.TaskScore{{Task: "a", Score: 0.1}, {Task: "b", Score: 1}, {Task: "a", Score: 0.2}, {Task: "a", Score: 0.3}})
	scores, err := outcome.MeanOfAttempts.PerTask(groups)
	fmt.Println(scores, err)
	// Output: [{a 0.19999999999999998} {b 1}] <nil>
}
