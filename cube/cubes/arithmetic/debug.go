package arithmetic

import (
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubetest"
)

// Agent returns the debug agent of a task: it submits the right answer.
func Agent(taskID string) cubetest.Agent {
	for _, m := range (&Config{}).Definition().Tasks {
		if m.Base().ID == taskID {
			return cubetest.Script(cube.NewAction("submit_answer", "answer", m.(*Metadata).Expected))
		}
	}
	return cubetest.Script()
}
