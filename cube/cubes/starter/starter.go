// Package starter is the example of a composite: the sums of package arithmetic
// and the files of package textfiles as one benchmark.
package starter

import (
	"errors"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubes/arithmetic"
	"github.com/proctor-run/proctor/cube/cubes/textfiles"
)

// Name of the composite.
const Name = "starter"

// Register adds the types of the parts; a composite has none of its own.
func Register(r *cube.Registry) error {
	return errors.Join(arithmetic.Register(r), textfiles.Register(r))
}

// Config returns the composite. Containers are launched by the backend.
func Config(backend cube.ContainerBackend) *cube.CompositeBenchmarkConfig {
	c := cube.NewComposite(Name, &arithmetic.Config{}, textfiles.NewConfig(backend))
	c.CompositeVersion = "0.1.0"
	c.CompositeDescription = "Sums and text files, as an example of a composite."
	return c
}

// Agent returns the debug agent of a task of one of the parts.
func Agent(task cube.TaskConfig) cube.Agent {
	if _, isSum := task.TaskMetadata().(*arithmetic.Metadata); isSum {
		return arithmetic.Agent(task)
	}
	return textfiles.Agent(task)
}
