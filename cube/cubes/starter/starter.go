// Package starter is the example of a composite: the sums of package arithmetic
// and the files of package textfiles as one benchmark.
package starter

import (
	"errors"
	"strings"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubes/arithmetic"
	"github.com/proctor-run/proctor/cube/cubes/textfiles"
	"github.com/proctor-run/proctor/cube/cubetest"
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
func Agent(taskID string) cubetest.Agent {
	part, id, _ := strings.Cut(taskID, "/")
	if part == "arithmetic-cube" {
		return arithmetic.Agent(id)
	}
	return textfiles.Agent(id)
}
