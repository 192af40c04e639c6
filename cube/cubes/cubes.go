// Package cubes lists the cubes that are shipped with proctor.
package cubes

import (
	"errors"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubes/arithmetic"
	"github.com/proctor-run/proctor/cube/cubes/starter"
	"github.com/proctor-run/proctor/cube/cubes/textfiles"
	"github.com/proctor-run/proctor/cube/cubetest"
)

// Cube is one shipped cube.
type Cube struct {
	// Name is the benchmark's name.
	Name string
	// Config returns the whole benchmark. Cubes whose tasks run in containers
	// launch them with the backend; the others ignore it.
	Config func(cube.ContainerBackend) cube.BenchmarkConfig
	// Agent returns the debug agent of a task.
	Agent cubetest.DebugAgent
	// NeedsContainer says that the tasks run in containers.
	NeedsContainer bool
}

// All returns the shipped cubes, by name.
func All() []Cube {
	return []Cube{
		{
			Name:   "arithmetic-cube",
			Config: func(cube.ContainerBackend) cube.BenchmarkConfig { return &arithmetic.Config{} },
			Agent:  arithmetic.Agent,
		},
		{
			Name:           starter.Name,
			Config:         func(b cube.ContainerBackend) cube.BenchmarkConfig { return starter.Config(b) },
			Agent:          starter.Agent,
			NeedsContainer: true,
		},
		{
			Name:           "textfiles-cube",
			Config:         func(b cube.ContainerBackend) cube.BenchmarkConfig { return textfiles.NewConfig(b) },
			Agent:          textfiles.Agent,
			NeedsContainer: true,
		},
	}
}

// Register adds the types of all shipped cubes.
func Register(r *cube.Registry) error {
	return errors.Join(arithmetic.Register(r), textfiles.Register(r), starter.Register(r))
}
