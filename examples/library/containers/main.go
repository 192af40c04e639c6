// Command containers is a program for a cube whose tasks run in containers: it
// lists, tests and runs them, and opens the sandboxes itself.
package main

import (
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubes/textfiles"
	"github.com/proctor-run/proctor/cubecli"
	"github.com/proctor-run/proctor/cubecli/sandboxes"
)

func main() {
	sandboxes.Main(cubecli.Cube{
		Name: "textfiles-cube", Register: textfiles.Register, Agent: textfiles.Agent, NeedsContainer: true,
		Config: func(b cube.ContainerBackend) cube.BenchmarkConfig { return textfiles.NewConfig(b) },
	})
}
