package cube

import (
	"context"
	"reflect"
	"slices"

	"github.com/proctor-run/proctor/internal/guarded"
)

// TaskConfig is all that a worker needs to make a task: its JSON and the
// registered types are enough, no benchmark (CUBE, section 4.7). Embed
// [TaskConfigBase] and write Make:
//
//	type TaskConfig struct {
//		cube.TaskConfigBase[*Metadata]
//	}
//
//	func (*TaskConfig) TypeName() string { return "my_cube.task.TaskConfig" }
//
//	func (c *TaskConfig) Make(ctx context.Context, rc cube.RuntimeContext, b cube.ContainerBackend) (*cube.Task, error) {
//		return c.Build(ctx, rc, b, &problem{}, &ToolConfig{})
//	}
//
// A method VerifyInstalled() error ([InstallVerifier]) is called before Make.
type TaskConfig interface {
	Typed
	// Make sets the task up. Neither the runtime context nor the backend is
	// required.
	Make(ctx context.Context, rc RuntimeContext, backend ContainerBackend) (*Task, error)

	// The rest comes with the embedded TaskConfigBase.
	taskConfigData
}

// taskConfigData is the part of a task config that TaskConfigBase has.
type taskConfigData interface {
	// TaskID identifies the task among all of a composite: the native id below
	// the path of sub-benchmarks.
	TaskID() string
	// TaskMetadata returns the metadata, nil when there is none.
	TaskMetadata() Metadata
	// Common returns the fields that do not depend on the metadata type.
	Common() *TaskConfigCommon
	setMetadata(Metadata) error
	bind(r *Registry, whole Typed)
	registry() *Registry
	// trackBuilt returns what notes the tasks that Build makes from here on.
	trackBuilt() *[]*Task
}

var _ taskConfigData = (*TaskConfigBase[Metadata])(nil)

// InstallVerifier is the optional ability of a task config to tell that
// something is not installed, and how to install it.
type InstallVerifier interface {
	VerifyInstalled() error
}

// TaskConfigCommon is the part of [TaskConfigBase] that does not depend on the
// metadata type.
type TaskConfigCommon struct {
	Seed       *int64     `json:"seed"`
	ToolConfig ToolConfig `json:"tool_config"` // nil: the cube's own default
	// SubBenchName is the path through composites, without the native id; nil
	// outside of composites.
	SubBenchName *string `json:"sub_bench_name"`
}

// Common returns c.
func (c *TaskConfigCommon) Common() *TaskConfigCommon { return c }

// TaskConfigBase holds the data of a task config; M is as for [TaskBase].
type TaskConfigBase[M Metadata] struct {
	Metadata M `json:"metadata" cube:"required"`
	TaskConfigCommon

	// What bind noted: where execution infos are looked for depends on the
	// config around this one.
	reg   *Registry
	whole TaskConfig

	// built is set in the copy of a config that one call of Make gets.
	built *[]*Task
}

// TaskMetadata returns the metadata, nil when there is none.
func (c *TaskConfigBase[M]) TaskMetadata() Metadata {
	if baseOf(c.Metadata) == nil {
		return nil
	}
	return c.Metadata
}

func (c *TaskConfigBase[M]) setMetadata(m Metadata) error { return assignMetadata(&c.Metadata, m) }

func (c *TaskConfigBase[M]) bind(r *Registry, whole Typed) {
	c.reg = r
	c.whole, _ = whole.(TaskConfig)
}

func (c *TaskConfigBase[M]) registry() *Registry { return c.reg }

func (c *TaskConfigBase[M]) trackBuilt() *[]*Task {
	c.built = new([]*Task)
	return c.built
}

// TaskID returns the native id, below the path of sub-benchmarks if it is set.
// An empty path counts as set.
func (c *TaskConfigBase[M]) TaskID() string {
	id := ""
	if m := baseOf(c.Metadata); m != nil {
		id = m.ID
	}
	if c.SubBenchName == nil {
		return id
	}
	return *c.SubBenchName + "/" + id
}

// Build is what Make of most cubes comes to: it gives the problem the
// config's metadata, seed and tool config (tool, if the config has none), the
// runtime context and the backend, and calls [NewTask]. What the problem already has
// of execution info stays.
func (c *TaskConfigBase[M]) Build(ctx context.Context, rc RuntimeContext, backend ContainerBackend, p Problem, tool ToolConfig) (*Task, error) {
	if m := c.TaskMetadata(); m != nil {
		if err := p.setMetadata(m); err != nil {
			return nil, err
		}
	}
	common := p.common()
	common.ToolConfig = c.ToolConfig
	if common.ToolConfig == nil {
		common.ToolConfig = tool
	}
	common.Seed = nil
	if c.Seed != nil {
		common.Seed = new(*c.Seed)
	}
	common.RuntimeContext = rc
	common.ContainerBackend = backend
	t, err := NewTask(ctx, p)
	if err == nil && c.built != nil {
		*c.built = append(*c.built, t)
	}
	return t, err
}

// copyConfig returns a shallow copy of a task config.
func copyConfig(c TaskConfig) TaskConfig {
	out := reflect.New(reflect.TypeOf(c).Elem())
	out.Elem().Set(reflect.ValueOf(c).Elem())
	copied := out.Interface().(TaskConfig)
	copied.bind(c.registry(), copied)
	return copied
}

// makeTask calls Make and turns a panic or a missing task into an error. Tasks
// that were set up before Make failed are closed: nobody else knows of them. The
// config is the call's own.
func makeTask(ctx context.Context, cfg TaskConfig, rc RuntimeContext, backend ContainerBackend) (t *Task, err error) {
	built := cfg.trackBuilt()
	returned := false // not when Make ends its goroutine
	defer func() {
		if err == nil && returned {
			return
		}
		if t != nil && !slices.Contains(*built, t) {
			*built = append(*built, t)
		}
		t = nil
		for _, made := range *built {
			err = joinCleanup(err, made.Close(ctx))
		}
	}()
	defer guarded.Recovered("Make of "+cfg.TypeName(), &err)
	if v, ok := cfg.(InstallVerifier); ok {
		if err := v.VerifyInstalled(); err != nil {
			return nil, err
		}
	}
	t, err = cfg.Make(ctx, rc, backend)
	returned = true
	if err == nil && t == nil {
		err = TypeErrorf("%s made no task", cfg.TypeName())
	}
	return t, err
}

// MakeTask makes the task of a config: what a worker does that has read the
// config from JSON. It checks that all is installed, calls Make, and makes an
// error of a panic in it.
func (r *Registry) MakeTask(ctx context.Context, cfg TaskConfig, rc RuntimeContext, backend ContainerBackend) (*Task, error) {
	cfg = copyConfig(cfg) // others may be making tasks of the same config
	cfg.bind(r, cfg)
	return makeTask(ctx, cfg, rc, backend)
}

// LoadTask reads a task that [Marshal] wrote from its problem, and sets it up
// with all that [NewTask] does.
func (r *Registry) LoadTask(ctx context.Context, data []byte) (*Task, error) {
	p, err := Load[typedProblem](r, data)
	if err != nil {
		return nil, err
	}
	return NewTask(ctx, p)
}
