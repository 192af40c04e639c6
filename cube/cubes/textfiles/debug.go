package textfiles

import (
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubetest"
)

// Agent returns the debug agent of a task: it writes the file and stops.
func Agent(taskID string) cubetest.Agent {
	for _, m := range (&Config{}).Definition().Tasks {
		if m.Base().ID == taskID {
			file := m.(*Metadata)
			return cubetest.Script(
				cube.NewAction("write_file", "path", file.File, "content", file.Content),
				cube.Stop(),
			)
		}
	}
	return cubetest.Script()
}
