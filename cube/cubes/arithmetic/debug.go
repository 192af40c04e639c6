package arithmetic

import "github.com/proctor-run/proctor/cube"

// Agent returns the debug agent of a task: it submits the right answer.
func Agent(task cube.TaskConfig) cube.Agent {
	return cube.Script(cube.NewAction("submit_answer", "answer", task.TaskMetadata().(*Metadata).Expected))
}
