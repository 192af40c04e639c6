// Package textfiles is the example of a cube whose tasks run in a container: an
// agent with a shell is asked to write a file, and the file is looked at.
package textfiles

import (
	"context"
	"fmt"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/infra"
	"github.com/proctor-run/proctor/cube/shell"
)

// image is what the tasks run in; any image with a shell would do.
const image = "debian:bookworm-slim"

// workDir is where the agent works.
const workDir = "/work"

// Register adds the cube's types and those of its tool.
func Register(r *cube.Registry) error {
	if err := shell.Register(r); err != nil {
		return err
	}
	return r.Add(&metadata{}, &task{}, &taskConfig{}, &Config{})
}

// metadata is one file to write.
type metadata struct {
	cube.TaskMetadata
	File    string `json:"file"` // relative to the working directory
	Content string `json:"content"`
}

// TypeName is the name of the type in documents.
func (*metadata) TypeName() string { return "textfiles_cube.task.TextFileTaskMetadata" }

// task asks for one file.
type task struct {
	cube.TaskBase[*metadata]
}

// TypeName is the name of the type in documents.
func (*task) TypeName() string { return "textfiles_cube.task.TextFileTask" }

// BuildTool makes the working directory before there is a tool that works in
// it.
func (t *task) BuildTool(ctx context.Context, c cube.Container) (cube.Tool, error) {
	if c == nil {
		return nil, cube.ValueErrorf("the task needs a container: give the benchmark a container backend or an infra")
	}
	if _, err := t.run(ctx, c, "mkdir -p "+workDir); err != nil {
		return nil, err
	}
	return t.ToolConfig.Make(ctx, c)
}

// run runs a command of the task's own, not of the agent.
func (t *task) run(ctx context.Context, c cube.Container, command string) (string, error) {
	r, err := c.Exec(ctx, cube.ExecRequest{Command: command, Workdir: "/"})
	if err != nil {
		return "", err
	}
	if r.ExitCode != 0 {
		return "", cube.RuntimeErrorf("%s: exit code %d: %s", command, r.ExitCode, r.Stderr)
	}
	return r.Stdout, nil
}

func (t *task) path() string { return workDir + "/" + t.Metadata.File }

// Reset removes the file and says what is wanted.
func (t *task) Reset(ctx context.Context) (*cube.Observation, cube.Info, error) {
	if err := t.Tool().Reset(ctx); err != nil {
		return nil, nil, err
	}
	if _, err := t.run(ctx, t.Container(), "rm -f "+infra.ShellQuote(t.path())); err != nil {
		return nil, nil, err
	}
	wish := fmt.Sprintf("Write the text %q, and nothing else, to the file %s.", t.Metadata.Content, t.path())
	return cube.Observe(cube.Text(wish)), nil, nil
}

// Evaluate gives 1 when the file holds the text; a newline at its end is fine.
func (t *task) Evaluate(ctx context.Context, _ *cube.Observation) (float64, cube.Info, error) {
	r, err := t.Container().Exec(ctx, cube.ExecRequest{Command: "cat " + infra.ShellQuote(t.path()), Workdir: "/"})
	if err != nil {
		return 0, nil, err
	}
	exists := r.ExitCode == 0
	correct := exists && (r.Stdout == t.Metadata.Content || r.Stdout == t.Metadata.Content+"\n")
	info := cube.Pairs("exists", exists, "correct", correct)
	if correct {
		return 1, info, nil
	}
	return 0, info, nil
}

// PrivilegedInfo tells judges what the file should hold.
func (t *task) PrivilegedInfo(context.Context) (cube.Content, error) {
	return cube.Structure(cube.Pairs("path", t.path(), "content", t.Metadata.Content)), nil
}

// taskConfig makes a Task.
type taskConfig struct {
	cube.TaskConfigBase[*metadata]
}

// TypeName is the name of the type in documents.
func (*taskConfig) TypeName() string { return "textfiles_cube.task.TextFileTaskConfig" }

// Make sets the task up with a shell that starts in the working directory.
func (c *taskConfig) Make(ctx context.Context, rc cube.RuntimeContext, b cube.ContainerBackend) (*cube.Task, error) {
	tool := shell.NewTerminalToolConfig()
	tool.WorkingDir = workDir
	tool.EnableFileActions = true
	return c.Build(ctx, rc, b, &task{}, tool)
}

// Config selects among the files.
type Config struct {
	cube.BenchmarkConfigBase
}

// NewConfig returns a config that runs all tasks in containers of the backend.
func NewConfig(backend cube.ContainerBackend) *Config {
	c := &Config{}
	c.ContainerBackend = backend
	return c
}

// TypeName is the name of the type in documents.
func (*Config) TypeName() string { return "textfiles_cube.benchmark.TextFilesBenchmarkConfig" }

// Definition lists the files.
func (*Config) Definition() cube.Definition {
	return cube.Definition{
		Metadata: &cube.BenchmarkMetadata{
			Name:           "textfiles-cube",
			Version:        "0.1.0",
			Description:    "Writing text files in a container, as an example of a cube.",
			NumTasks:       2,
			Tags:           []string{"example", "shell"},
			ResetIsolation: "app_level",
		},
		Tasks: []cube.Metadata{
			file("greeting", "greeting.txt", "Hello, world!"),
			file("nested", "notes/today.txt", "nothing new"),
		},
		TaskConfig: &taskConfig{},
	}
}

func file(id, name, content string) *metadata {
	container := cube.NewContainerConfig(image)
	container.CPUCores, container.RAMGB = 1, 1
	return &metadata{
		TaskMetadata: cube.TaskMetadata{ID: id, RecommendedMaxSteps: new(5), ContainerConfig: container},
		File:         name,
		Content:      content,
	}
}
