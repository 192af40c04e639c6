package cube

import (
	"fmt"

	"github.com/proctor-run/proctor/cube/internal/executioncache"
	"github.com/proctor-run/proctor/cube/typed"
)

// ExecutionInfoPath returns where the execution info of a config is looked for
// first.
func (r *Registry) ExecutionInfoPath(c TaskConfig) string {
	return executioncache.Dir(r.ExecutionCacheDir(c)).Path(c.TaskID())
}

// LoadExecutionInfoAs reads what install left for a task as a T, a pointer to a
// registered type of the cube (CUBE, section 4.7). A plain object, as
// installers of other implementations write it, is read as exactly T; one with
// a _type must be a T or a subtype. A task that is not installed is a
// RuntimeError that says what to do, data that does not fit a
// [*ValidationError]. Call it in Make:
//
//	info, err := cube.LoadExecutionInfoAs[*ExecutionInfo](c)
func LoadExecutionInfoAs[T ExecutionInfo](c TaskConfig) (T, error) {
	var zero T
	obj, err := ExecutionInfoObject(c)
	if err != nil {
		return zero, err
	}
	if _, base := any(zero).(*TaskExecutionInfo); base && !obj.Has(typed.TypeKey) {
		return zero, untypedExecutionInfo(c)
	}
	info, err := FromValue[T](c.registry(), obj)
	if err != nil {
		return zero, fmt.Errorf("reading the execution info of task %s: %w", quote(c.TaskID()), err)
	}
	return info, nil
}

// ExecutionInfoObject is [LoadExecutionInfoAs] for cubes that need the plain
// object, to decrypt or rewrite it before they read it with [FromValue].
func ExecutionInfoObject(c TaskConfig) (*Object, error) {
	data, err := ExecutionInfoData(c)
	if err != nil {
		return nil, err
	}
	return executioncache.Object(c.TaskID(), data)
}

// ExecutionInfoData returns the bytes of what install left for a task: of the
// file of the derived id or, since install knows only native ids, of the native
// one.
func ExecutionInfoData(c TaskConfig) ([]byte, error) {
	r, m := c.registry(), c.TaskMetadata()
	switch {
	case r == nil:
		return nil, RuntimeErrorf("no registry: read the task config through one, or make the task with its MakeTask")
	case m == nil:
		return nil, RuntimeErrorf("the task config has no metadata")
	}
	return executioncache.Dir(r.ExecutionCacheDir(c)).Read(c.TaskID(), m.Base().ID)
}

// LoadExecutionInfo is [LoadExecutionInfoAs] for data that names its type. Data
// without a _type is an error: it cannot be told what it is.
func (c *TaskConfigBase[M]) LoadExecutionInfo() (ExecutionInfo, error) {
	if c.whole == nil {
		return nil, RuntimeErrorf("no registry: read the task config through one, or make the task with its MakeTask")
	}
	obj, err := ExecutionInfoObject(c.whole)
	if err != nil {
		return nil, err
	}
	if !obj.Has(typed.TypeKey) {
		return nil, untypedExecutionInfo(c.whole)
	}
	info, err := FromValue[ExecutionInfo](c.reg, obj)
	if err != nil {
		return nil, fmt.Errorf("reading the execution info of task %s: %w", quote(c.TaskID()), err)
	}
	return info, nil
}

func untypedExecutionInfo(c TaskConfig) error {
	return ValueErrorf("the execution info of task %s at %s has no _type: read it with cube.LoadExecutionInfoAs, which is told the type", quote(c.TaskID()), c.registry().ExecutionInfoPath(c))
}
