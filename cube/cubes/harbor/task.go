package harborcube

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox"
)

// Task is a Harbor task as a problem: its instruction is the first observation
// and its verifier the evaluation.
type Task struct {
	cube.TaskBase[*Metadata]

	task   *harbor.Task
	host   harbor.Lookup
	oracle bool
	// limit of a verification, besides that of the call.
	limit  environment.Limit
	handed *container // the environment is somebody else's; nil: it is the task's container
	dirty  bool       // the sandbox has been used since it was made

	tried *Verdict // the last evaluation, also one that failed
	// last is the evaluation of the state after lastUse commands.
	last    *Verdict
	lastUse int
}

// TypeName is the name of the type in documents.
func (*Task) TypeName() string { return "terminalbench2_cube.task.TerminalBench2Task" }

// BuildTool makes the shell, in an environment of the task's own only: one
// that was started from an image alone is not what the task asks for.
func (p *Task) BuildTool(ctx context.Context, c cube.Container) (cube.Tool, error) {
	if p.task == nil {
		return nil, cube.RuntimeErrorf("a Harbor task is made by its task config")
	}
	if p.handed != nil {
		return p.ToolConfig.Make(ctx, p.handed)
	}
	if _, ok := containerOf(c); !ok {
		return nil, cube.ValueErrorf("a Harbor task needs a container backend that runs sandboxes, such as LocalContainerBackend")
	}
	return p.ToolConfig.Make(ctx, c)
}

func (p *Task) box() *container {
	if p.handed != nil {
		return p.handed
	}
	c, _ := containerOf(p.Container())
	return c
}

// Sandbox returns the sandbox that runs now. A reset replaces it.
func (p *Task) Sandbox() sandbox.Sandbox { return p.box().env.Sandbox() }

// Reset brings a sandbox that nobody has used and states the instruction.
func (p *Task) Reset(ctx context.Context) (*cube.Observation, cube.Info, error) {
	box := p.box()
	if err := box.ready(); err != nil {
		return nil, nil, fmt.Errorf("resetting task %q: %w", p.Metadata.ID, err)
	}
	p.last, p.tried = nil, nil
	if p.dirty {
		if err := box.env.Renew(ctx); err != nil {
			return nil, nil, err
		}
	}
	p.dirty = true
	if err := p.Tool().Reset(ctx); err != nil {
		return nil, nil, err
	}
	if p.oracle {
		if err := p.uploadSolution(ctx, box.env.Sandbox()); err != nil {
			return nil, nil, err
		}
	}
	info := cube.Pairs("task_id", p.Metadata.ID, "difficulty", p.Metadata.Difficulty, "category", p.Metadata.Category)
	return cube.Observe(cube.Text(p.task.Instruction)), info, nil
}

// Close ends the task: nothing more can be done with it.
func (p *Task) Close(context.Context) error {
	if box := p.box(); box != nil {
		box.close()
	}
	return nil
}

func (p *Task) uploadSolution(ctx context.Context, sb sandbox.Sandbox) error {
	script := p.task.SolutionScript(nil)
	if _, err := os.Stat(script); err != nil {
		return exception.New(exception.FileNotFoundError, "Solution script not found: "+script)
	}
	if err := sandbox.UploadDir(ctx, sb, filepath.Dir(script), harbor.SolutionDir, filepath.Base(script)); err != nil {
		return fmt.Errorf("uploading the solution: %w", err)
	}
	return nil
}

// OracleActions are the actions that solve a task in oracle mode: its solution
// script, with the solution's variables, and a stop.
func OracleActions(t *harbor.Task, host harbor.Lookup) ([]cube.Action, error) {
	env, err := harbor.ResolveEnv(t.Config.Solution.Env, host)
	if err != nil {
		return nil, err
	}
	command := "DEBIAN_FRONTEND=noninteractive"
	for _, assignment := range harbor.Assignments(env) {
		quoted, err := harbor.Linux.Quote(assignment)
		if err != nil {
			return nil, err
		}
		command += " " + quoted
	}
	command = "env " + command + " " + path.Join(harbor.SolutionDir, path.Base(filepath.ToSlash(t.SolutionScript(nil))))
	return []cube.Action{cube.NewAction("bash", "command", command, "timeout", maxCommandSec), cube.Stop()}, nil
}

// PrivilegedInfo tells judges the files of the solution and of the tests, and
// the solution's script.
func (p *Task) PrivilegedInfo(context.Context) (cube.Content, error) {
	info := cube.Pairs("solution", fileList(p.task.SolutionDir()), "verifier", fileList(p.task.TestsDir()), "oracle", nil)
	script := p.task.SolutionScript(nil)
	if text, err := bounded.ReadIn(filepath.Dir(script), filepath.Base(script), maxSolution); err == nil {
		cube.Put(info, "oracle", strings.ToValidUTF8(string(text), "\uFFFD"))
	}
	return cube.Structure(info), nil
}

// maxSolution bounds the solution's script, in bytes.
const maxSolution = 64 << 20

// fileList names the regular files below a directory, in order.
func fileList(dir string) []string {
	list := []string{}
	_ = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			list = append(list, name)
		}
		return nil // what cannot be read is not listed
	})
	slices.Sort(list)
	return list
}
