package harborcube

// What only tests outside the package need by name.

type (
	TaskConfig = taskConfig
)

var (
	NewTaskConfig = newTaskConfig
)
