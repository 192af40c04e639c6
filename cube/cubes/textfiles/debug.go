package textfiles

import "github.com/proctor-run/proctor/cube"

// Agent returns the debug agent of a task: it writes the file and stops.
func Agent(task cube.TaskConfig) cube.Agent {
	file := task.TaskMetadata().(*metadata)
	return cube.Script(cube.NewAction("write_file", "path", file.File, "content", file.Content))
}
