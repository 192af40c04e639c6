package harborcube

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/shell"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
)

// Options say which tasks [Register] offers and what of this process
// their sandboxes see.
type Options struct {
	// Path of a task directory or of a directory of them. Empty registers the
	// types alone: what a worker needs that gets its task configs as JSON.
	Path string
	// Name of the benchmark; empty is the last name of the path. Two directories
	// in one composite need two names.
	Name string
	// Host finds variables of the host for the templates of task.toml. Tasks
	// get it through the runtime context.
	Lookup harbor.Lookup
	// Oracle puts the solution into the sandboxes, as OracleMode of the task
	// configs does.
	Oracle bool
}

// Register adds Harbor tasks as a cube (CUBE server, section 3): the types
// of their configs and tool, and with a Path returns the config of a benchmark.
// Each directory is a benchmark of its own; a registry takes many. The tasks
// need a container backend that runs sandboxes, cube.LocalContainerBackend.
func Register(r *cube.Registry, o Options) (*Config, error) {
	err := errors.Join(shell.Register(r), r.Add(&Metadata{}, &Task{}, &TaskConfig{}, &Config{}))
	if err != nil || o.Path == "" {
		return nil, err
	}
	abs, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, err
	}
	cfg := &Config{Path: abs, Name: o.Name, OracleMode: o.Oracle, host: o.Lookup}
	if cfg.found, err = readTasks(abs); err != nil {
		return nil, err
	}
	return cfg, nil
}

// readTasks reads the metadata of all tasks below a path.
func readTasks(path string) (tasks []cube.Metadata, err error) {
	found, err := harbor.Discover(path, false)
	if err != nil {
		return nil, err
	}
	for _, dir := range found.Dirs {
		m, err := NewMetadata(dir)
		if err != nil {
			return nil, fmt.Errorf("task %q: %w", dir, err)
		}
		tasks = append(tasks, m)
	}
	if len(tasks) == 0 {
		return nil, exception.New(exception.FileNotFoundError, "there is no task in "+path)
	}
	return tasks, nil
}

// Config selects among the Harbor tasks of a directory. Its JSON names the
// directory, so that another process on the machine can read the tasks.
type Config struct {
	cube.BenchmarkConfigBase
	Path string `json:"path"`
	// Name of the benchmark; empty is the last name of the path.
	Name string `json:"name" default:""`
	// OracleMode is that of the task configs.
	OracleMode bool `json:"oracle_mode" default:"false"`

	host  harbor.Lookup
	found []cube.Metadata // what Register read
}

var (
	_ cube.Parametrised   = (*Config)(nil)
	_ cube.TaskConfigurer = (*Config)(nil)
)

// TypeName is the name of the type in documents.
func (*Config) TypeName() string {
	return "terminalbench2_cube.benchmark.TerminalBench2BenchmarkConfig"
}

// Definition is not called: see Define.
func (*Config) Definition() cube.Definition { return cube.Definition{} }

// DefinitionKey tells directories, and names for them, apart.
func (c *Config) DefinitionKey() string { return c.Path + "\x00" + c.Name }

// Define lists the tasks of the directory: as Register found them, else as they
// are now.
func (c *Config) Define() (cube.Definition, error) {
	tasks := c.found
	if tasks == nil {
		var err error
		if tasks, err = readTasks(c.Path); err != nil {
			return cube.Definition{}, err
		}
	}
	return cube.Definition{
		Metadata: &cube.BenchmarkMetadata{
			Name:           c.name(),
			Version:        harbor.SchemaVersion,
			Description:    "Harbor tasks.",
			NumTasks:       len(tasks),
			Tags:           []string{"terminal", "swe", "docker"},
			ResetIsolation: "new_instance",
			NamedSubsets: cube.MapOf([]string{"easy", "medium", "hard"},
				[][2]string{{"difficulty", "easy"}, {"difficulty", "medium"}, {"difficulty", "hard"}}),
		},
		Tasks:      tasks,
		TaskConfig: &TaskConfig{},
		Runtime:    func() cube.Runtime { return runtime{c.host} },
	}, nil
}

func (c *Config) name() string {
	if c.Name != "" {
		return c.Name
	}
	if real, err := filepath.EvalSymlinks(c.Path); err == nil {
		return filepath.Base(real)
	}
	return filepath.Base(c.Path)
}

// hostKey is the key of the host's variables in the runtime context.
const hostKey = "harbor_host_variables"

// runtime hands the host's variables to the tasks.
type runtime struct{ host harbor.Lookup }

func (r runtime) Setup(_ context.Context, s *cube.Setup) error {
	if r.host == nil {
		return nil
	}
	return s.Set(hostKey, &r.host)
}

func (runtime) Close(context.Context) error { return nil }
