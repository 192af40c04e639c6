package cube

import (
	"errors"

	"github.com/proctor-run/proctor/cube/infra"
	"github.com/proctor-run/proctor/cube/typed"
)

// addCore registers the types of this package. Their names and families are
// the format's; that they fit is covered by tests.
func (r *Registry) addCore() {
	core := []Typed{
		&ActionSchema{}, &Action{},
		&TextContent{}, &StructuredContent{}, &ImageContent{}, &AudioContent{}, &VideoContent{},
		&Observation{}, &StepError{}, &EnvironmentOutput{},
		&ToolboxConfig{},
		&TaskMetadata{}, &TaskExecutionInfo{},
		&infra.ContainerConfig{},
		&infra.LocalContainerBackend{}, &infra.ModalContainerBackend{},
		&infra.DaytonaContainerBackend{}, &infra.ToolkitContainerBackend{},
		&infra.ResourceConfig{}, &infra.VMResourceConfig{}, &infra.DockerServiceConfig{},
		&infra.DockerImageConfig{}, &infra.VolumeSpec{}, &infra.LocalInfraConfig{},
		&BasicSeedGenerator{},
		&BenchmarkMetadata{}, &CompositeBenchmarkConfig{},
	}
	err := errors.Join(
		AddFamily[Typed](r, "cube.core.TypedBaseModel"),
		AddFamily[Content](r, "cube.core.Content"),
		AddFamily[ToolConfig](r, "cube.tool.ToolConfig"),
		AddFamily[ContainerBackend](r, "cube.container.ContainerBackend"),
		AddFamily[typedProblem](r, "cube.task.Task"),
		AddFamily[TaskConfig](r, "cube.task.TaskConfig"),
		AddFamily[BenchmarkConfig](r, "cube.benchmark.BenchmarkConfig"),
		AddFamily[Infra](r, "cube.resource.InfraConfig"),
		AddFamily[SeedGenerator](r, "cube.seed.AbstractSeedGenerator"),
		r.Add(core...),
		// Bases that can stand for themselves have an interface for slots that
		// also take their subtypes.
		typed.AddSlot[Metadata, TaskMetadata](r.types),
		typed.AddSlot[ExecutionInfo, TaskExecutionInfo](r.types),
		typed.AddSlot[infra.Resource, infra.ResourceConfig](r.types),
	)
	if err != nil {
		panic("cube: the package's own types do not register: " + err.Error())
	}
}
