package job_test

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
)

// A configuration becomes a plan: attempt outermost, then task, then agent.
func ExamplePlan() {
	c, _, err := jobdir.ParseConfig([]byte("{job_name: demo, n_attempts: 2, agents: [{name: oracle}, {name: nop}]}"), jobdir.YAML, time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	path := "tasks/hello"
	tasks := []jobdir.Task{{Config: jobdir.TaskConfig{Path: &path}}}
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
