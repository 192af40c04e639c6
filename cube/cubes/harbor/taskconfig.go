package harborcube

import (
	"context"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/shell"
	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/clock"
)

// TaskConfig makes a Harbor task; its JSON names the task's directory.
type TaskConfig struct {
	cube.TaskConfigBase[*Metadata]
	// OracleMode puts the solution into the sandbox at each reset.
	OracleMode bool `json:"oracle_mode" default:"false"`
}

// TypeName is the name of the type in documents.
func (*TaskConfig) TypeName() string { return "terminalbench2_cube.task.TerminalBench2TaskConfig" }

// NewTaskConfig returns the config of the task in a directory.
func NewTaskConfig(dir string) (*TaskConfig, error) {
	m, err := NewMetadata(dir)
	if err != nil {
		return nil, err
	}
	c := &TaskConfig{}
	c.Metadata = m
	return c, nil
}

// maxCommandSec caps the time that one command of the agent may take.
const maxCommandSec = 900

// Make starts the task's environment and gives it a shell.
func (c *TaskConfig) Make(ctx context.Context, rc cube.RuntimeContext, b cube.ContainerBackend) (*cube.Task, error) {
	t, err := harbor.Load(c.Metadata.Path, harbor.LoadOptions{})
	if err != nil {
		return nil, err
	}
	if err := Check(t); err != nil {
		return nil, err
	}
	if b == nil {
		return nil, cube.ValueErrorf("a Harbor task needs a container backend that runs sandboxes, such as LocalContainerBackend")
	}
	p := &Task{task: t, oracle: c.OracleMode, limit: environment.Limit{Sec: new(t.Config.VerifierTimeoutSec(nil))}}
	if v, ok := rc.Get(hostKey); ok {
		if host, ok := v.(*harbor.Lookup); ok {
			p.host = *host
		}
	}
	m := *c.Metadata
	m.ContainerConfig = cube.Upcast[cube.ContainerConfig](&launch{
		ContainerConfig: *containerConfig(t), task: t, host: p.host, now: clock.Or(nil),
	})
	whole := *c
	whole.Metadata = &m
	return whole.Build(ctx, rc, b, p, toolConfig(t))
}

// NewTask returns the task of an environment that is running. It is bounded by
// what bounds its calls alone: the verifier's time limit is the caller's. Reset
// renews the environment once something has happened in it; Close leaves it to
// whoever started it.
func NewTask(ctx context.Context, env *environment.Environment) (*cube.Task, error) {
	t := env.Task()
	if err := Check(t); err != nil {
		return nil, err
	}
	c := &TaskConfig{}
	c.Metadata = metadataOf(t)
	handed := &container{env: env, id: env.Sandbox().ID()}
	return c.Build(ctx, cube.RuntimeContext{}, nil, &Task{task: t, handed: handed}, toolConfig(t))
}

// toolConfig is the shell of a task.
func toolConfig(t *harbor.Task) *shell.TerminalToolConfig {
	tool := shell.NewTerminalToolConfig()
	tool.WorkingDir, tool.MaxTimeout, tool.EnableFileActions = "", new(maxCommandSec), true
	if dir := t.Config.Environment.Workdir; dir != nil {
		tool.WorkingDir = *dir
	}
	return tool
}

// Check returns, as an error, why a task cannot be offered as a CUBE task yet.
func Check(t *harbor.Task) error {
	switch {
	case t.Config.HasSteps():
		return cube.NotImplementedErrorf("task %q has several steps, which cannot be offered as a CUBE task; run it with 'proctor run'", t.Name)
	case t.Config.VerifierMode(nil) == harbor.Separate:
		return cube.NotImplementedErrorf("task %q verifies in an environment of its own, which cannot be offered as a CUBE task; run it with 'proctor run'", t.Name)
	}
	return nil
}

// ConfigureTask gives a task the benchmark's options.
func (c *Config) ConfigureTask(cfg cube.TaskConfig) error {
	own, ok := cfg.(*TaskConfig)
	if !ok {
		return cube.TypeErrorf("%T is not a config of a Harbor task", cfg)
	}
	own.OracleMode = own.OracleMode || c.OracleMode
	return nil
}
