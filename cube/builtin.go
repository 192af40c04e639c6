package cube

import "reflect"

// addCore registers the types of this package. Their names and families are
// the format's; that they fit is covered by tests.
func (r *Registry) addCore() {
	for path, t := range map[string]reflect.Type{
		"cube.core.TypedBaseModel":        typedType,
		"cube.core.Content":               reflect.TypeFor[Content](),
		"cube.tool.ToolConfig":            reflect.TypeFor[ToolConfig](),
		"cube.container.ContainerBackend": reflect.TypeFor[ContainerBackend](),
		"cube.task.Task":                  reflect.TypeFor[typedProblem](),
		"cube.task.TaskConfig":            reflect.TypeFor[TaskConfig](),
		"cube.benchmark.BenchmarkConfig":  reflect.TypeFor[BenchmarkConfig](),
		"cube.resource.InfraConfig":       reflect.TypeFor[Infra](),
		"cube.seed.AbstractSeedGenerator": reflect.TypeFor[SeedGenerator](),
	} {
		name, _ := simpleName(path)
		r.addFamily(path, name, t)
	}
	core := []Typed{
		&ActionSchema{}, &Action{},
		&TextContent{}, &StructuredContent{}, &ImageContent{}, &AudioContent{}, &VideoContent{},
		&Observation{}, &StepError{}, &EnvironmentOutput{},
		&ToolboxConfig{},
		&TaskMetadata{}, &TaskExecutionInfo{},
		&ContainerConfig{},
		&LocalContainerBackend{}, &ModalContainerBackend{}, &DaytonaContainerBackend{}, &ToolkitContainerBackend{},
		&ResourceConfig{}, &VMResourceConfig{}, &DockerServiceConfig{}, &DockerImageConfig{}, &VolumeSpec{},
		&LocalInfraConfig{},
		&BasicSeedGenerator{},
		&BenchmarkMetadata{}, &CompositeBenchmarkConfig{},
	}
	if err := r.Add(core...); err != nil {
		panic("cube: the package's own types do not register: " + err.Error())
	}
	// Bases that can stand for themselves have an interface for slots that
	// also take their subtypes.
	for t, base := range map[reflect.Type]reflect.Type{
		reflect.TypeFor[Metadata]():      reflect.TypeFor[TaskMetadata](),
		reflect.TypeFor[ExecutionInfo](): reflect.TypeFor[TaskExecutionInfo](),
		reflect.TypeFor[Resource]():      reflect.TypeFor[ResourceConfig](),
	} {
		r.families[t] = r.byGo[base]
	}
}
