package harbor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/shell"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/value"
)

// CubeOptions say which tasks [RegisterCube] offers and what of this process
// their sandboxes see.
type CubeOptions struct {
	// Path of a task directory or of a directory of them. Empty registers the
	// types alone: what a worker needs that gets its task configs as JSON.
	Path string
	// Host finds variables of the host for the templates of task.toml. Tasks
	// get it through the runtime context.
	Host Lookup
	// Oracle puts the solution into the sandboxes, as OracleMode of the task
	// configs does.
	Oracle bool
}

// RegisterCube adds Harbor tasks as a cube (CUBE server, section 3): the types
// of their configs and tool, and with a Path the benchmark, whose config is
// then returned. The tasks need a container backend that runs sandboxes,
// cube.LocalContainerBackend.
func RegisterCube(r *cube.Registry, o CubeOptions) (*CubeConfig, error) {
	err := errors.Join(shell.Register(r), r.Add(&CubeMetadata{}, &CubeTask{}, &CubeTaskConfig{}))
	if err != nil || o.Path == "" {
		return nil, err
	}
	cfg := &CubeConfig{host: o.Host, oracle: o.Oracle}
	if cfg.name, cfg.tasks, err = cubeTasks(o.Path); err != nil {
		return nil, err
	}
	return cfg, r.Add(cfg)
}

// cubeTasks reads the metadata of all tasks below a path.
func cubeTasks(path string) (name string, tasks []cube.Metadata, err error) {
	found, err := Discover(path, false)
	if err != nil {
		return "", nil, err
	}
	for _, dir := range found.Dirs {
		m, err := NewCubeMetadata(dir)
		if err != nil {
			return "", nil, fmt.Errorf("task %q: %w", dir, err)
		}
		tasks = append(tasks, m)
	}
	if len(tasks) == 0 {
		return "", nil, exception.Errorf(exception.FileNotFoundError, "there is no task in %s", path)
	}
	abs, err := resolve(path)
	return filepath.Base(abs), tasks, err
}

// CubeConfig selects among the Harbor tasks of a directory.
type CubeConfig struct {
	cube.BenchmarkConfigBase

	// Of the value that was registered.
	name   string
	tasks  []cube.Metadata
	host   Lookup
	oracle bool
}

// TypeName returns "terminalbench2_cube.benchmark.TerminalBench2BenchmarkConfig".
func (*CubeConfig) TypeName() string {
	return "terminalbench2_cube.benchmark.TerminalBench2BenchmarkConfig"
}

// Definition lists the tasks that were found when the cube was registered.
func (c *CubeConfig) Definition() cube.Definition {
	return cube.Definition{
		Metadata: &cube.BenchmarkMetadata{
			Name:           c.name,
			Version:        SchemaVersion,
			Description:    "Harbor tasks.",
			NumTasks:       len(c.tasks),
			Tags:           []string{"terminal", "swe", "docker"},
			ResetIsolation: "new_instance",
			NamedSubsets: cube.MapOf([]string{"easy", "medium", "hard"},
				[][2]string{{"difficulty", "easy"}, {"difficulty", "medium"}, {"difficulty", "hard"}}),
		},
		Tasks:      c.tasks,
		TaskConfig: &CubeTaskConfig{},
		Runtime:    func() cube.Runtime { return cubeRuntime{c.host, c.oracle} },
	}
}

// Keys of the runtime context.
const (
	hostKey   = "harbor_host_variables"
	oracleKey = "harbor_oracle"
)

// cubeRuntime hands the host's variables to the tasks.
type cubeRuntime struct {
	host   Lookup
	oracle bool
}

func (r cubeRuntime) Setup(_ context.Context, s *cube.Setup) error {
	if r.host != nil {
		if err := s.Set(hostKey, &r.host); err != nil {
			return err
		}
	}
	return s.Set(oracleKey, r.oracle)
}

func (cubeRuntime) Close(context.Context) error { return nil }

// CubeRuntimeContext is the runtime context of tasks that are made without a
// benchmark.
func CubeRuntimeContext(host Lookup) (cube.RuntimeContext, error) {
	return cube.NewRuntimeContext(hostKey, &host)
}

// CubeMetadata is what CUBE knows of a Harbor task without making it (CUBE
// server, section 3.1).
type CubeMetadata struct {
	cube.TaskMetadata
	Difficulty         string   `json:"difficulty" default:"unknown"`
	Category           string   `json:"category" default:""`
	Tags               []string `json:"tags" default:"[]"`
	MaxAgentTimeoutSec int      `json:"max_agent_timeout_sec" default:"900"` // a hint
	// Path of the task directory on the machine that makes the task.
	Path string `json:"path"`
	// OracleReward is what the task's own solution gets.
	OracleReward float64 `json:"oracle_reward" default:"1.0"`
}

// TypeName returns "terminalbench2_cube.task.TerminalBench2TaskMetadata".
func (*CubeMetadata) TypeName() string { return "terminalbench2_cube.task.TerminalBench2TaskMetadata" }

// oracleRewardKey in [metadata] of a task.toml says what the task's solution
// gets where that is not 1: a solution of an example may fail on purpose.
const oracleRewardKey = "oracle_reward"

// Bounds and defaults of metadata.
const (
	abstractLength     = 200
	defaultRAMGB       = 4
	defaultDiskGB      = 10
	defaultAgentSec    = 900
	maxAbstractTimeout = 1 << 31
)

// NewCubeMetadata reads the metadata of a task directory.
func NewCubeMetadata(dir string) (*CubeMetadata, error) {
	t, err := Load(dir, LoadOptions{})
	if err != nil {
		return nil, err
	}
	return t.cubeMetadata(), nil
}

func (t *Task) cubeMetadata() *CubeMetadata {
	m := &CubeMetadata{Path: t.Dir, Difficulty: "unknown", Tags: []string{}, MaxAgentTimeoutSec: defaultAgentSec, OracleReward: 1}
	m.ID, m.Split = filepath.Base(t.Dir), "test"
	line, _, _ := strings.Cut(strings.TrimSpace(t.Instruction), "\n")
	m.AbstractDescription = cutRunes(strings.TrimSpace(line), abstractLength)
	m.ContainerConfig = t.cubeContainer()
	if sec := t.Config.Agent.TimeoutSec; sec != nil && *sec >= 0 && *sec < maxAbstractTimeout {
		m.MaxAgentTimeoutSec = int(*sec)
	}
	free := t.Config.Metadata
	if free == nil {
		return m
	}
	setText(&m.Difficulty, free, "difficulty")
	setText(&m.Category, free, "category")
	if v, ok := free.Get("tags"); ok {
		list, _ := v.(value.List)
		for _, item := range list {
			if s, ok := item.(value.Str); ok {
				m.Tags = append(m.Tags, string(s))
			}
		}
	}
	if v, ok := free.Get(oracleRewardKey); ok {
		if n, ok := v.(value.Number); ok {
			if f, err := value.ToFloat(n); err == nil {
				m.OracleReward = f
			}
		}
	}
	return m
}

func setText(dst *string, o *value.Object, key string) {
	if v, ok := o.Get(key); ok {
		if s, ok := v.(value.Str); ok {
			*dst = string(s)
		}
	}
}

func cutRunes(s string, limit int) string {
	if runes := []rune(s); len(runes) > limit {
		return string(runes[:limit])
	}
	return s
}

// cubeContainer describes the environment as far as CUBE has words for it; the
// task itself is started as task.toml says.
func (t *Task) cubeContainer() *cube.ContainerConfig {
	env := &t.Config.Environment
	c := cube.NewContainerConfig("")
	if env.DockerImage != nil && !t.HasDockerfile() {
		c.Image = *env.DockerImage
	}
	c.CPUCores, c.RAMGB, c.DiskGB = 1, defaultRAMGB, defaultDiskGB
	if env.CPUs != nil {
		c.CPUCores = float64(amount(env.CPUs))
	}
	if env.MemoryMB != nil {
		c.RAMGB = float64(amount(env.MemoryMB)) / 1024
	}
	if env.StorageMB != nil {
		c.DiskGB = float64(amount(env.StorageMB)) / 1024
	}
	c.GPU = amount(env.GPUs) > 0
	return c
}

// CubeTaskConfig makes a Harbor task; its JSON names the task's directory.
type CubeTaskConfig struct {
	cube.TaskConfigBase[*CubeMetadata]
	// OracleMode puts the solution into the sandbox at each reset.
	OracleMode bool `json:"oracle_mode" default:"false"`

	run CubeRun
}

// TypeName returns "terminalbench2_cube.task.TerminalBench2TaskConfig".
func (*CubeTaskConfig) TypeName() string { return "terminalbench2_cube.task.TerminalBench2TaskConfig" }

// NewCubeTaskConfig returns the config of the task in a directory.
func NewCubeTaskConfig(dir string) (*CubeTaskConfig, error) {
	m, err := NewCubeMetadata(dir)
	if err != nil {
		return nil, err
	}
	c := &CubeTaskConfig{}
	c.Metadata = m
	return c, nil
}

// CubeRun is what a trial says of a task that it runs, beyond the task itself.
// The zero value says nothing.
type CubeRun struct {
	// Spec describes the sandbox instead of what task.toml alone gives.
	Spec *sandbox.Spec
	// LogRoot is the directory whose subdirectories verifier, agent and
	// artifacts keep what is written to /logs. Without, a temporary directory
	// is removed with the task.
	LogRoot string
	// VerifierEnv is added to the verifier's variables.
	VerifierEnv Env
	// VerifierSec limits the verifier instead of the task's own limit.
	VerifierSec *float64
}

// Within makes the task part of a run. That is not in the config's JSON.
func (c *CubeTaskConfig) Within(run CubeRun) { c.run = run }

// maxCommandSec caps the time that one command of the agent may take.
const maxCommandSec = 900

// Make starts the task's environment and gives it a shell.
func (c *CubeTaskConfig) Make(ctx context.Context, rc cube.RuntimeContext, b cube.ContainerBackend) (*cube.Task, error) {
	t, err := Load(c.Metadata.Path, LoadOptions{})
	if err != nil {
		return nil, err
	}
	if err := t.cubeable(); err != nil {
		return nil, err
	}
	if b == nil {
		return nil, cube.ValueErrorf("a Harbor task needs a container backend that runs sandboxes, such as LocalContainerBackend")
	}
	p := &CubeTask{task: t, oracle: c.OracleMode, run: c.run}
	if v, ok := rc.Get(hostKey); ok {
		if host, ok := v.(*Lookup); ok {
			p.host = *host
		}
	}
	if v, ok := rc.Get(oracleKey); ok && v == any(value.Bool(true)) {
		p.oracle = true
	}
	tool := shell.NewTerminalToolConfig()
	tool.WorkingDir, tool.MaxTimeout, tool.EnableFileActions = "", new(maxCommandSec), true
	if dir := t.Config.Environment.Workdir; dir != nil {
		tool.WorkingDir = *dir
	}
	m := *c.Metadata
	m.ContainerConfig = cube.Upcast[cube.ContainerConfig](&cubeLaunch{
		ContainerConfig: *t.cubeContainer(), task: t, host: p.host, run: c.run,
	})
	whole := *c
	whole.Metadata = &m
	return whole.Build(ctx, rc, b, p, tool)
}

// cubeable refuses what a CUBE task cannot be yet.
func (t *Task) cubeable() error {
	switch {
	case t.Config.HasSteps():
		return cube.NotImplementedErrorf("task %q has several steps, which cannot be offered as a CUBE task; run it with 'proctor run'", t.Name)
	case t.Config.VerifierMode(nil) == Separate:
		return cube.NotImplementedErrorf("task %q verifies in an environment of its own, which cannot be offered as a CUBE task; run it with 'proctor run'", t.Name)
	}
	return nil
}
