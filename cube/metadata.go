package cube

import "reflect"

// TaskMetadata is what is known of a task before it is made: light, and read
// for all tasks at once (CUBE, section 4.1). Benchmarks embed it and add fields
// of their own. Heavy data belongs into a [TaskExecutionInfo].
type TaskMetadata struct {
	link
	ID                  string           `json:"id"` // native, never prefixed
	Split               string           `json:"split" default:"test" enum:"train,val,test"`
	AbstractDescription string           `json:"abstract_description" default:""` // for search and filters; agents never see it
	RecommendedMaxSteps *int             `json:"recommended_max_steps"`           // a hint
	ContainerConfig     *ContainerConfig `json:"container_config"`                // nil: the task needs no container
}

// TypeName is the name of the type in documents.
func (*TaskMetadata) TypeName() string { return "cube.task.TaskMetadata" }

// Base returns m.
func (m *TaskMetadata) Base() *TaskMetadata { return m }

// Metadata is a *TaskMetadata or a pointer to a struct that embeds one.
type Metadata interface {
	Typed
	Base() *TaskMetadata
}

// TaskExecutionInfo is the heavy data of one task, read when the task is made:
// see [TaskConfigBase.LoadExecutionInfo]. It has no fields; embed it and add
// yours.
type TaskExecutionInfo struct{ link }

// TypeName is the name of the type in documents.
func (*TaskExecutionInfo) TypeName() string { return "cube.task.TaskExecutionInfo" }

func (*TaskExecutionInfo) executionInfo() {}

// ExecutionInfo is a *TaskExecutionInfo or a pointer to a struct that embeds
// one.
type ExecutionInfo interface {
	Typed
	executionInfo()
}

// baseOf returns the base of metadata, nil for none and for nil pointers.
func baseOf(m Metadata) *TaskMetadata {
	if m == nil {
		return nil
	}
	if v := reflect.ValueOf(m); v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	return m.Base()
}
