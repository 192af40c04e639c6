package taskcheck_test

import (
	"fmt"

	"github.com/proctor-run/proctor/job/taskcheck"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
)

// A task whose solution gets its reward, and whose tests also reward no work.
func Example() {
	roles := taskcheck.Reference(1)
	fmt.Println(*taskcheck.Agents(roles)[0].Name, *taskcheck.Agents(roles)[1].Name)

	one, err := reward.ParseText([]byte("1"), "reward.txt")
	if err != nil {
		fmt.Println(err)
		return
	}
	var trials []taskcheck.Trial
	for _, role := range roles { // they would be run here
		result := &jobdir.TrialResult{AgentExecution: &jobdir.Timing{}, VerifierResult: &jobdir.VerifierResult{Rewards: one}}
		trials = append(trials, taskcheck.Trial{Role: role, Result: result})
	}
	report := taskcheck.NewReport("a-task")
	taskcheck.JudgeReference(report, taskcheck.Outcome{Goal: 1, Reference: trials})
	for _, c := range report.Checks {
		fmt.Println(c.Status, c.Name+":", c.Message)
	}
	// Output:
	// oracle nop
	// pass oracle: the solution gets 1.0 in 1 of 1 runs
	// fail nop: no work gets 1.0
	// skip repeats: one run alone cannot differ
}
