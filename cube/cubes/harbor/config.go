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
	// Host finds variables of the host for the templates of task.toml. Tasks
	// get it through the runtime context.
	Host harbor.Lookup
	// Oracle puts the solution into the sandboxes, as OracleMode of the task
	// configs does.
	Oracle bool
}

// Register adds Harbor tasks as a cube (CUBE server, section 3): the types
// of their configs and tool, and with a Path the benchmark, whose config is
// then returned. The tasks need a container backend that runs sandboxes,
// cube.LocalContainerBackend.
func Register(r *cube.Registry, o Options) (*Config, error) {
	err := errors.Join(shell.Register(r), r.Add(&Metadata{}, &Task{}, &TaskConfig{}))
	if err != nil || o.Path == "" {
		return nil, err
	}
	cfg := &Config{host: o.Host, oracle: o.Oracle}
	if cfg.name, cfg.tasks, err = readTasks(o.Path); err != nil {
		return nil, err
	}
	return cfg, r.Add(cfg)
}

// readTasks reads the metadata of all tasks below a path.
func readTasks(path string) (name string, tasks []cube.Metadata, err error) {
	found, err := harbor.Discover(path, false)
	if err != nil {
		return "", nil, err
	}
	for _, dir := range found.Dirs {
		m, err := NewMetadata(dir)
		if err != nil {
			return "", nil, fmt.Errorf("task %q: %w", dir, err)
		}
		tasks = append(tasks, m)
	}
	if len(tasks) == 0 {
		return "", nil, exception.New(exception.FileNotFoundError, "there is no task in "+path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", nil, err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return "", nil, err
	}
	return filepath.Base(abs), tasks, nil
}

// Config selects among the Harbor tasks of a directory.
type Config struct {
	cube.BenchmarkConfigBase

	// Of the value that was registered.
	name   string
	tasks  []cube.Metadata
	host   harbor.Lookup
	oracle bool
}

// TypeName returns "terminalbench2_cube.benchmark.TerminalBench2BenchmarkConfig".
func (*Config) TypeName() string {
	return "terminalbench2_cube.benchmark.TerminalBench2BenchmarkConfig"
}

// Definition lists the tasks that were found when the cube was registered.
func (c *Config) Definition() cube.Definition {
	return cube.Definition{
		Metadata: &cube.BenchmarkMetadata{
			Name:           c.name,
			Version:        harbor.SchemaVersion,
			Description:    "Harbor tasks.",
			NumTasks:       len(c.tasks),
			Tags:           []string{"terminal", "swe", "docker"},
			ResetIsolation: "new_instance",
			NamedSubsets: cube.MapOf([]string{"easy", "medium", "hard"},
				[][2]string{{"difficulty", "easy"}, {"difficulty", "medium"}, {"difficulty", "hard"}}),
		},
		Tasks:      c.tasks,
		TaskConfig: &TaskConfig{},
		Runtime:    func() cube.Runtime { return runtime{c.host, c.oracle} },
	}
}

// Keys of the runtime context.
const (
	hostKey   = "harbor_host_variables"
	oracleKey = "harbor_oracle"
)

// runtime hands the host's variables to the tasks.
type runtime struct {
	host   harbor.Lookup
	oracle bool
}

func (r runtime) Setup(_ context.Context, s *cube.Setup) error {
	if r.host != nil {
		if err := s.Set(hostKey, &r.host); err != nil {
			return err
		}
	}
	return s.Set(oracleKey, r.oracle)
}

func (runtime) Close(context.Context) error { return nil }
